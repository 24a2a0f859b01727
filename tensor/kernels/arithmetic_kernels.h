#pragma once

#include <cstdint>

#include "tensor/isa.h"
#include "tensor/shape.h"

namespace sherd {

/// minus_quotient is -(a / b).
enum class Arithmetic : uint8_t { add, sub, mul, div, minus_quotient };

namespace kernels {

/// y[i] = a[i] f b[i] for row-major i over `dims` dims of sizes `shape`, at least one; y is
/// contiguous, a and b have strides in elements. Items are elements of y. T f32, f64, bf16 or f16.
template <class T>
struct ArithmeticBroadcast {
  const T* a;
  const T* b;
  T* y;
  Arithmetic f;
  int dims;
  int64_t shape[kMaxDims];
  int64_t a_strides[kMaxDims];
  int64_t b_strides[kMaxDims];
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// y[i] = x[i] · factor, contiguous; y may be x.
template <class T>
struct Scale {
  const T* x;
  T* y;
  double factor;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace kernels
}  // namespace sherd
