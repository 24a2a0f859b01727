// Rows [R, C] are contiguous; items are rows.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// y = exp(x - max(x)) / Σ exp(x - max(x))
template <class T>
struct Softmax {
  const T* x;
  T* y;
  int64_t columns;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// dx = y · (dy - Σ dy · y)
template <class T>
struct SoftmaxBackward {
  const T* y;
  const T* dy;
  T* dx;
  int64_t columns;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// y = x - max(x) - log Σ exp(x - max(x))
template <class T>
struct LogSoftmax {
  const T* x;
  T* y;
  int64_t columns;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// dx = dy - exp(y) · Σ dy
template <class T>
struct LogSoftmaxBackward {
  const T* y;
  const T* dy;
  T* dx;
  int64_t columns;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
