#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

/// is[i] = x[i] == y[i] ? 1 : 0, contiguous, y broadcast to x before.
template <class T>
struct EqualOnes {
  const T* x;
  const T* y;
  T* is;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
