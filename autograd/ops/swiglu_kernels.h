// Rows [R, 2F] and [R, F] are contiguous; items are rows.
#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

template <class T>
struct Swiglu {
  const T* x;
  T* y;
  int64_t width;  ///< F
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

template <class T>
struct SwigluBackward {
  const T* x;
  const T* dy;
  T* dx;
  int64_t width;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
