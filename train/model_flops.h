// The work in a training step, by which speeds are compared.
#pragma once

#include <cstdint>

#include "nn/models/gpt2.h"

namespace sherd {

/// FLOPs of forward and backward over `tokens` tokens: 6 · weights · tokens, and attention's
/// 12 · layers · channels · context · tokens without deducting the causal half.
/// Weights are those of matrices; the token table counts once, as the head.
inline double model_flops(const Gpt2Config& config, std::int64_t tokens) {
  const auto L = static_cast<double>(config.layers), C = static_cast<double>(config.channels),
             V = static_cast<double>(config.vocab), S = static_cast<double>(config.context),
             T = static_cast<double>(tokens);
  const double F = config.hidden > 0 ? static_cast<double>(config.hidden) : 4 * C;
  const double weights = L * (4 * C * C + 2 * C * F) + V * C;
  return 6 * weights * T + 12 * L * C * S * T;
}

}  // namespace sherd
