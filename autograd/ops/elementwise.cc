#include "autograd/ops/elementwise.h"

#include "autograd/ops/elementwise_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

constexpr int64_t kBlock = 16384;  // elements

template <class Which>
Variable elementwise(const char* name, const Variable& x, Which f) {
  const Context in(name);
  const Tensor a = x.value().contiguous();
  Tensor y = Tensor::empty_like(a);
  on_dtype<float, double, bf16, f16>(a.dtype(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(*a.runtime(), kernels::ElementwiseForward<T, Which>{a.data<T>(), y.data<T>(), f},
           a.numel(), kBlock);
  });
  return x.tape().record(
      name, std::move(y), {x}, [x = Saved(x), f, name](const Tensor& dy) -> Grads {
        const Tensor a = x.get().contiguous();
        const Tensor g = dy.contiguous();
        Tensor dx = Tensor::empty_like(a);
        on_dtype<float, double, bf16, f16>(a.dtype(), name, [&](auto tag) {
          using T = typename decltype(tag)::type;
          launch(*a.runtime(),
                 kernels::ElementwiseBackward<T, Which>{a.data<T>(), g.data<T>(), dx.data<T>(), f},
                 a.numel(), kBlock);
        });
        return {std::move(dx)};
      });
}

}  // namespace

Variable activate(const Variable& x, Activation f) {
  return f == Activation::none ? x : elementwise(name_of(f), x, f);
}

Variable exp(const Variable& x) { return elementwise("exp", x, kernels::Function::exp); }
Variable log(const Variable& x) { return elementwise("log", x, kernels::Function::log); }
Variable sqrt(const Variable& x) { return elementwise("sqrt", x, kernels::Function::sqrt); }
Variable square(const Variable& x) { return elementwise("square", x, kernels::Function::square); }

}  // namespace sherd
