// Dims: C columns; R rows, all dims before the last.
#include "autograd/ops/softmax.h"

#include "autograd/ops/softmax_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

/// Both functions: Forward and Backward are their kernels.
template <template <class> class Forward, template <class> class Backward>
Variable over_rows(const char* op, const Variable& x) {
  const Context in(op);
  check(x.shape().size() > 0, "wants at least one dim, x is a scalar");
  const Tensor x_RC = x.value().contiguous();
  const Tensor y = Tensor::empty_like(x_RC);
  const int64_t columns = x.size(-1);
  const int64_t rows = columns == 0 ? 0 : x.shape().numel() / columns;
  on_dtype<float, double, bf16, f16>(x.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(*x.runtime(), Forward<T>{x_RC.data<T>(), y.data<T>(), columns}, rows, block_of(columns));
  });
  return x.tape().record(
      op, y, {x}, [y = Saved(y), op, rows, columns](const Tensor& any_dy) -> Grads {
        const Tensor dy = any_dy.contiguous();
        const Tensor dx = Tensor::empty_like(dy);
        on_dtype<float, double, bf16, f16>(dx.dtype(), op, [&](auto tag) {
          using T = typename decltype(tag)::type;
          launch(*dx.runtime(),
                 Backward<T>{y.get().template data<T>(), dy.data<T>(), dx.data<T>(), columns}, rows,
                 block_of(columns));
        });
        return {dx};
      });
}

}  // namespace

Variable softmax(const Variable& x) {
  return over_rows<kernels::Softmax, kernels::SoftmaxBackward>("softmax", x);
}

Variable log_softmax(const Variable& x) {
  return over_rows<kernels::LogSoftmax, kernels::LogSoftmaxBackward>("log_softmax", x);
}

}  // namespace sherd
