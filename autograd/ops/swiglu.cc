#include "autograd/ops/swiglu.h"

#include "autograd/ops/swiglu_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

Variable swiglu(const Variable& x) {
  const Context in("swiglu");
  check(x.shape().size() > 0 && x.size(-1) % 2 == 0,
        "wants the gate and what it lets through side by side in an even last dim, not", x.shape());
  const Tensor a = x.value().contiguous();
  const int64_t rows = a.shape().rows(a.dims() - 1);
  const int64_t F = a.size(-1) / 2;
  Shape out = a.shape();
  out[out.size() - 1] = F;
  const Tensor y = Tensor::empty(a.runtime(), out, a.dtype());
  on_dtype<float, double, bf16, f16>(a.dtype(), "swiglu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(*a.runtime(), kernels::Swiglu<T>{a.data<T>(), y.data<T>(), F}, F == 0 ? 0 : rows,
           block_of(F));
  });
  return x.tape().record("swiglu", y, {x}, [a = Saved(a), rows, F](const Tensor& dy) -> Grads {
    const Tensor g = dy.contiguous();
    const Tensor dx = Tensor::empty_like(a.get());
    on_dtype<float, double, bf16, f16>(dx.dtype(), "swiglu", [&](auto tag) {
      using T = typename decltype(tag)::type;
      launch(*dx.runtime(),
             kernels::SwigluBackward<T>{a.get().template data<T>(), g.data<T>(), dx.data<T>(), F},
             F == 0 ? 0 : rows, block_of(F));
    });
    return {dx};
  });
}

}  // namespace sherd
