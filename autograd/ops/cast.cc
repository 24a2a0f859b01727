#include "autograd/ops/cast.h"

namespace sherd {

Variable cast(const Variable& x, DType dtype) {
  const Context in("cast");
  check(is_floating(dtype) && is_floating(x.dtype()), "wants floating dtypes, got", x.dtype(), "to",
        dtype);
  if (x.dtype() == dtype) return x;
  return x.tape().record("cast", x.value().to(dtype), {x},
                         [from = x.dtype()](const Tensor& dy) -> Grads { return {dy.to(from)}; });
}

}  // namespace sherd
