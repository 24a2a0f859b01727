#include "train/batch.h"

namespace sherd {

std::vector<std::int32_t> read_batch(const TokenSource& source, const Sampler& sampler,
                                     std::int64_t first, std::int64_t B) {
  const auto row = static_cast<std::size_t>(sampler.context() + 1);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(B) * row);
  for (std::int64_t b = 0; b < B; ++b) {
    source.read(sampler.begin_of(first + b),
                std::span(tokens).subspan(static_cast<std::size_t>(b) * row, row));
  }
  return tokens;
}

}  // namespace sherd
