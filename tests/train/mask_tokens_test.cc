#include "train/mask_tokens.h"

#include <algorithm>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

constexpr std::int32_t kVocab = 50, kMask = 50;

std::vector<std::int32_t> tokens(std::size_t n) {
  std::vector<std::int32_t> t(n);
  for (std::size_t i = 0; i < n; ++i) t[i] = static_cast<std::int32_t>(i * 7 % kVocab);
  return t;
}

TEST_CASE("15 % are predicted: 80 % of them masked, 10 % another token, 10 % as they are") {
  const auto all = tokens(100'000);
  const MaskedTokens m = mask_tokens(all, kVocab, kMask, {1, 2});
  int predicted = 0, masked = 0, changed = 0;
  std::vector<int> drawn(kVocab);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (m.targets[i] == -1) {
      REQUIRE(m.inputs[i] == all[i]);
      continue;
    }
    REQUIRE(m.targets[i] == all[i]);
    ++predicted;
    if (m.inputs[i] == kMask) {
      ++masked;
    } else if (m.inputs[i] != all[i]) {
      ++changed;
      ++drawn[static_cast<std::size_t>(m.inputs[i])];
    }
  }
  // Four deviations of each share.
  CHECK(std::abs(predicted - 15'000) < 4 * 113);
  CHECK(std::abs(masked - 0.8 * predicted) < 4 * 49);
  CHECK(std::abs(changed - 0.1 * predicted * 49 / 50) < 4 * 37);
  CHECK(*std::min_element(drawn.begin(), drawn.end()) > 0);  // any token may come
}

TEST_CASE("a token's fate depends on key and place alone") {
  const auto all = tokens(1000);
  const MaskedTokens whole = mask_tokens(all, kVocab, kMask, {1, 2});
  const MaskedTokens first = mask_tokens(std::span(all).first(300), kVocab, kMask, {1, 2});
  CHECK(std::equal(first.inputs.begin(), first.inputs.end(), whole.inputs.begin()));
  CHECK(mask_tokens(all, kVocab, kMask, {1, 2}).targets == whole.targets);
  CHECK(mask_tokens(all, kVocab, kMask, {1, 3}).targets != whole.targets);
  CHECK(mask_tokens({}, kVocab, kMask, {1, 2}).inputs.empty());
}

}  // namespace
}  // namespace sherd
