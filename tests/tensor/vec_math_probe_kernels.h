// The functions of vec_math.h as kernels, so that a test reaches each instruction set's.
#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

enum class Probe : uint8_t { exp, log, tanh, erf, normal_cdf, normal_density, sqrt, reciprocal };

/// y = f(x); items must be a multiple of 16.
template <class T>
struct VecMathProbe {
  const T* x;
  T* y;
  Probe f;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
