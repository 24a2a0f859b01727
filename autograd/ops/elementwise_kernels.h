// Kernels over contiguous elements; the rows they apply are in elementwise_functors.h.
#pragma once

#include <cstdint>

#include "autograd/ops/activation.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// The rows that are not activations.
enum class Function : uint8_t { exp, log, sqrt, square };

/// y = f(x); y may be x. Which is Activation or Function; T f32, f64, bf16 or f16.
template <class T, class Which>
struct ElementwiseForward {
  const T* x;
  T* y;
  Which f;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// dx = dy · f'(x); dx may be dy.
template <class T, class Which>
struct ElementwiseBackward {
  const T* x;
  const T* dy;
  T* dx;
  Which f;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

template <class T>
using ActivationForward = ElementwiseForward<T, Activation>;
template <class T>
using ActivationBackward = ElementwiseBackward<T, Activation>;

/// Both in one pass, for an op that kept x alone: dx = dy · f'(x), y = f(x). dx may be dy.
template <class T>
struct ActivationBackwardFused {
  const T* x;
  const T* dy;
  T* dx;
  T* y;
  Activation f;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
