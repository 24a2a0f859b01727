#include "autograd/ops/dropout.h"

#include "autograd/ops/dropout_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

Tensor masked(const Tensor& x, double p, RandomKey key) {
  const Tensor from = x.contiguous();
  Tensor y = Tensor::empty_like(from);
  const auto threshold = static_cast<uint32_t>(p * 0x1p32);
  on_dtype<float, double, bf16, f16>(x.dtype(), "dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(*x.runtime(),
           kernels::Dropout<T>{from.data<T>(), y.data<T>(), from.numel(), key.seed, key.stream,
                               threshold, 1 / (1 - p)},
           (from.numel() + 3) / 4, 4096);
  });
  return y;
}

}  // namespace

Variable dropout(const Variable& x, double p, RandomKey key) {
  const Context in("dropout");
  check(p >= 0 && p < 1, "wants 0 <= p < 1, got", p);
  if (p == 0) return x;
  return x.tape().record("dropout", masked(x.value(), p, key), {x},
                         [p, key](const Tensor& dy) -> Grads { return {masked(dy, p, key)}; });
}

}  // namespace sherd
