#include "tensor/kernels/arithmetic.h"

#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

constexpr int64_t kBlock = 16384;  // elements

/// The dims of y with those joined over which both inputs go on as over one; at least one dim.
template <class T>
void set_dims(kernels::ArithmeticBroadcast<T>& k, const Tensor& a, const Tensor& b) {
  k.dims = 0;
  for (int d = 0; d < a.dims(); ++d) {
    const int64_t n = a.shape()[d];
    if (n == 1) continue;
    const int64_t sa = a.strides()[d];
    const int64_t sb = b.strides()[d];
    const int last = k.dims - 1;
    if (last >= 0 && k.a_strides[last] == sa * n && k.b_strides[last] == sb * n) {
      k.shape[last] *= n;
      k.a_strides[last] = sa;
      k.b_strides[last] = sb;
      continue;
    }
    k.shape[k.dims] = n;
    k.a_strides[k.dims] = sa;
    k.b_strides[k.dims] = sb;
    ++k.dims;
  }
  if (k.dims > 0) return;
  k.dims = 1;
  k.shape[0] = 1;
  k.a_strides[0] = 1;
  k.b_strides[0] = 1;
}

}  // namespace

Tensor combine(Arithmetic f, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), "arithmetic wants equal dtypes:", describe(a), "and", describe(b));
  const Shape shape = broadcast(a.shape(), b.shape());
  Tensor y = Tensor::empty(a.runtime(), shape, a.dtype());
  const Tensor wide_a = a.expand(shape);
  const Tensor wide_b = b.expand(shape);
  on_dtype<float, double, bf16, f16>(a.dtype(), "arithmetic", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::ArithmeticBroadcast<T> kernel{a.data<T>(), b.data<T>(), y.data<T>(), f, 0, {}, {}, {}};
    set_dims(kernel, wide_a, wide_b);
    launch(*a.runtime(), kernel, y.numel(), kBlock);
  });
  return y;
}

Tensor scaled(const Tensor& x, double factor) {
  const Tensor from = x.contiguous();
  Tensor y = Tensor::empty_like(from);
  on_dtype<float, double, bf16, f16>(x.dtype(), "scale", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(*x.runtime(), kernels::Scale<T>{from.data<T>(), y.data<T>(), factor}, y.numel(), kBlock);
  });
  return y;
}

}  // namespace sherd
