// The work in a training step, by which speeds are compared.
#pragma once

#include <cstdint>

#include "nn/models/language_model.h"

namespace sherd {

/// FLOPs of forward and backward over `tokens` tokens: 6 · weights · tokens, and attention's
/// 12 · layers · width of the heads · context · tokens without deducting the causal half.
/// Weights are those of matrices; the token table counts once, as the head.
inline double model_flops(const LanguageModelSizes& sizes, std::int64_t tokens) {
  const auto T = static_cast<double>(tokens);
  return 6 * static_cast<double>(sizes.matrix_weights) * T +
         12 * static_cast<double>(sizes.layers * sizes.heads * sizes.head_dim * sizes.context) * T;
}

}  // namespace sherd
