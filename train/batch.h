// Samples as rows of numbers. Legend: B samples, T context, N ranks, A micro-batches a rank and
// step.
#pragma once

#include <cstdint>
#include <vector>

#include "train/sampler.h"
#include "train/token_source.h"

namespace sherd {

/// [B, T + 1]: row b holds the tokens of sample first + b; columns 0 .. T - 1 are inputs, 1 .. T
/// targets.
std::vector<std::int32_t> read_batch(const TokenSource& source, const Sampler& sampler,
                                     std::int64_t first, std::int64_t B);

/// The first sample of global micro-batch g = 0 .. A N - 1 of the step that begins at sample
/// `position`. After the step the position is position + A N B; neither depends on how the A N are
/// divided among ranks.
inline std::int64_t first_sample(std::int64_t position, std::int64_t g, std::int64_t B) {
  return position + g * B;
}

}  // namespace sherd
