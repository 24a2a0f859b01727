#include "train/mask_tokens.h"

namespace sherd {
namespace {

/// Whether a random word is among the first `percent` of all.
bool within(std::uint32_t word, std::uint64_t percent) {
  return std::uint64_t{word} * 100 < percent << 32;
}

}  // namespace

MaskedTokens mask_tokens(std::span<const std::int32_t> tokens, std::int32_t vocab,
                         std::int32_t mask, RandomKey key) {
  MaskedTokens out;
  out.inputs.assign(tokens.begin(), tokens.end());
  out.targets.assign(tokens.size(), -1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto [chosen, fate, other, unused] = random_words(key, i);
    if (!within(chosen, 15)) continue;
    out.targets[i] = tokens[i];
    if (within(fate, 80))
      out.inputs[i] = mask;
    else if (within(fate, 90))
      out.inputs[i] =
          static_cast<std::int32_t>(std::uint64_t{other} * static_cast<std::uint64_t>(vocab) >> 32);
  }
  return out;
}

}  // namespace sherd
