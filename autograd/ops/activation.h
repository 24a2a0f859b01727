// The functions that may stand between two linear layers.
#pragma once

#include <cstdint>

namespace sherd {

/// none x · relu max(x, 0) · gelu_tanh x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) · gelu_erf x Φ(x) ·
/// silu x σ(x) · sigmoid σ(x) · tanh
/// Hendrycks & Gimpel 2016 (GELU and its tanh form)
enum class Activation : uint8_t { none, relu, gelu_tanh, gelu_erf, silu, sigmoid, tanh };

constexpr const char* name_of(Activation a) {
  constexpr const char* names[] = {"none", "relu",    "gelu_tanh", "gelu_erf",
                                   "silu", "sigmoid", "tanh"};
  return names[static_cast<int>(a)];
}

}  // namespace sherd
