#include "autograd/ops/linear.h"

#include "autograd/ops/elementwise_kernels.h"
#include "autograd/ops/linear_kernels.h"
#include "autograd/tape.h"
#include "tensor/gemm.h"
#include "tensor/kernels/launch.h"

// Dim letters: R rows (all leading dims of x), I in, O out.

namespace sherd {

namespace {

Shape with_last(const Shape& shape, int64_t last) {
  Shape s = shape;
  s[s.size() - 1] = last;
  return s;
}

/// y_RO = x_RI · w_OIᵀ + b_O
Tensor forward(const Tensor& x, const Tensor& w, const Tensor& b) {
  const int64_t I = w.size(1);
  const int64_t O = w.size(0);
  Tensor y = Tensor::empty(x.runtime(), with_last(x.shape(), O), x.dtype());
  gemm(*x.runtime(), {.m = x.shape().rows(x.dims() - 1),
                      .n = O,
                      .k = I,
                      .a = x.raw(),
                      .lda = I,
                      .b = w.raw(),
                      .ldb = I,
                      .transpose_b = true,
                      .c = y.raw(),
                      .ldc = O,
                      .bias = b ? b.raw() : nullptr,
                      .in = x.dtype(),
                      .out = x.dtype()});
  return y;
}

/// dx_RI = dy_RO · w_OI
Tensor input_gradient(const Tensor& dy, const Tensor& w) {
  const int64_t I = w.size(1);
  const int64_t O = w.size(0);
  Tensor dx = Tensor::empty(dy.runtime(), with_last(dy.shape(), I), dy.dtype());
  gemm(*dy.runtime(), {.m = dy.shape().rows(dy.dims() - 1),
                       .n = I,
                       .k = O,
                       .a = dy.raw(),
                       .lda = O,
                       .b = w.raw(),
                       .ldb = I,
                       .c = dx.raw(),
                       .ldc = I,
                       .in = dy.dtype(),
                       .out = dy.dtype()});
  return dx;
}

/// dw_OI = dy_ROᵀ · x_RI
Tensor weight_gradient(const Tensor& dy, const Tensor& x) {
  const int64_t I = x.shape().back();
  const int64_t O = dy.shape().back();
  Tensor dw = Tensor::empty(dy.runtime(), {O, I}, accumulate_dtype(dy.dtype()));
  gemm(*dy.runtime(), {.m = O,
                       .n = I,
                       .k = dy.shape().rows(dy.dims() - 1),
                       .a = dy.raw(),
                       .lda = O,
                       .transpose_a = true,
                       .b = x.raw(),
                       .ldb = I,
                       .c = dw.raw(),
                       .ldc = I,
                       .in = dy.dtype(),
                       .out = dw.dtype()});
  return dw;
}

/// db_O = sum of dy_RO over R
Tensor bias_gradient(const Tensor& dy) {
  const int64_t O = dy.shape().back();
  Tensor db = Tensor::empty(dy.runtime(), {O}, accumulate_dtype(dy.dtype()));
  on_dtype<float, double, bf16, f16>(dy.dtype(), "linear", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Kernel = kernels::ColumnSums<T, Accumulate<T>>;
    launch(*dy.runtime(),
           Kernel{dy.data<T>(), db.data<Accumulate<T>>(), dy.shape().rows(dy.dims() - 1), O},
           (O + Kernel::kColumns - 1) / Kernel::kColumns, 1);
  });
  return db;
}

constexpr int64_t kBlock = 16384;  // elements

/// f(x)
Tensor activated(const Tensor& x, Activation f) {
  if (f == Activation::none) return x;
  Tensor y = Tensor::empty_like(x);
  on_dtype<float, double, bf16, f16>(x.dtype(), "linear", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(*x.runtime(), kernels::ActivationForward<T>{x.data<T>(), y.data<T>(), f}, x.numel(),
           kBlock);
  });
  return y;
}

/// f(x), and dx = d · f'(x) in place of d, in one pass.
Tensor activated_and_gradient(const Tensor& x, const Tensor& d, Activation f) {
  if (f == Activation::none) return x;
  Tensor y = Tensor::empty_like(x);
  on_dtype<float, double, bf16, f16>(x.dtype(), "linear", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(
        *x.runtime(),
        kernels::ActivationBackwardFused<T>{x.data<T>(), d.data<T>(), d.data<T>(), y.data<T>(), f},
        x.numel(), kBlock);
  });
  return y;
}

}  // namespace

Variable linear(const Variable& x, const Variable& w, const Variable& b,
                Activation input_activation) {
  const Context in("linear");
  check(w.value().dims() == 2 && x.value().dims() >= 1 && x.shape().back() == w.size(1),
        "linear wants x [..., in] and w [out, in], got", x.shape(), "and", w.shape());
  check(!b || b.shape() == Shape{w.size(0)}, "linear wants b [out] for w [out, in], got",
        b ? b.shape() : Shape{}, "and", w.shape());
  check(w.dtype() == x.dtype() && (!b || b.dtype() == x.dtype()), "linear wants one dtype, got x",
        x.dtype(), "and w", w.dtype());

  const Tensor input = x.value().contiguous();
  Tensor y = forward(activated(input, input_activation), w.value().contiguous(),
                     b ? b.value().contiguous() : Tensor());
  return x.tape().record(
      "linear", std::move(y), {x, w, b},
      [want_x = x.requires_grad(), want_w = w.requires_grad(), want_b = b && b.requires_grad(),
       input = Saved(input), weight = Saved(w), input_activation](const Tensor& dy_any) {
        const Tensor dy = dy_any.contiguous();
        Grads grads(3);
        if (want_x) grads[0].dense = input_gradient(dy, weight.get().contiguous());
        const Tensor a = grads[0].dense
                             ? activated_and_gradient(input.get(), grads[0].dense, input_activation)
                             : activated(input.get(), input_activation);
        if (want_w) grads[1].dense = weight_gradient(dy, a);
        if (want_b) grads[2].dense = bias_gradient(dy);
        return grads;
      });
}

}  // namespace sherd
