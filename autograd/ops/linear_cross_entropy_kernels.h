#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// x[i] *= factor
template <class T>
struct ScaleInPlace {
  T* x;
  sherd::Accumulate<T> factor;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
