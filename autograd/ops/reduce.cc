#include "autograd/ops/reduce.h"

#include <limits>

#include "autograd/ops/reduce_kernels.h"
#include "tensor/kernels/arithmetic.h"
#include "tensor/kernels/launch.h"
#include "tensor/kernels/reduce.h"

namespace sherd {

namespace {

/// The shape without the dims that are reduced.
Shape dropped(const Shape& x, const std::vector<int>& dims) {
  Shape shape;
  unsigned reduced = dims.empty() ? ~0u : 0u;
  for (const int d : dims) reduced |= 1u << x.resolve(d);
  for (int d = 0; d < x.size(); ++d)
    if ((reduced & (1u << d)) == 0) shape.push_back(x[d]);
  return shape;
}

Variable scaled_sum(const char* name, const Variable& x, const std::vector<int>& dims, Keep keep,
                    double by) {
  const Shape kept = kept_shape(x.shape(), dims);
  Tensor y = reduce_sum(x.value(), kept, by).to(x.dtype());
  if (keep == Keep::no) y = y.view(dropped(x.shape(), dims));
  return x.tape().record(name, std::move(y), {x},
                         [by, kept, shape = x.shape()](const Tensor& dy) -> Grads {
                           const Tensor g = by == 1 ? dy.contiguous() : scaled(dy, by);
                           return {g.view(kept).expand(shape)};
                         });
}

/// 1 where x equals y, which broadcasts to it.
Tensor equal_ones(const Tensor& x, const Tensor& y) {
  const Tensor a = x.contiguous();
  const Tensor b = y.expand(x.shape()).contiguous();
  Tensor is = Tensor::empty_like(a);
  on_dtype<float, double, bf16, f16>(x.dtype(), "max", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(*x.runtime(), kernels::EqualOnes<T>{a.data<T>(), b.data<T>(), is.data<T>()}, a.numel(),
           16384);
  });
  return is;
}

}  // namespace

Variable sum(const Variable& x, const std::vector<int>& dims, Keep keep) {
  const Context in("sum");
  return scaled_sum("sum", x, dims, keep, 1);
}

Variable mean(const Variable& x, const std::vector<int>& dims, Keep keep) {
  const Context in("mean");
  const Shape kept = kept_shape(x.shape(), dims);
  double count = 1;
  for (int d = 0; d < kept.size(); ++d)
    if (kept[d] != x.shape()[d]) count *= static_cast<double>(x.shape()[d]);
  return scaled_sum("mean", x, dims, keep,
                    count == 0 ? std::numeric_limits<double>::quiet_NaN() : 1 / count);
}

Variable max(const Variable& x, const std::vector<int>& dims, Keep keep) {
  const Context in("max");
  const Shape kept = kept_shape(x.shape(), dims);
  const Tensor y = reduce_max(x.value(), kept).to(x.dtype());
  const Tensor out = keep == Keep::no ? y.view(dropped(x.shape(), dims)) : y;
  return x.tape().record(
      "max", out, {x}, [x = Saved(x), y = Saved(y), kept](const Tensor& dy) -> Grads {
        const Tensor is = equal_ones(x.get(), y.get());
        const Tensor ties = reduce_sum(is, kept).to(dy.dtype());
        const Tensor share = combine(Arithmetic::div, dy.contiguous().view(kept), ties);
        return {combine(Arithmetic::mul, is, share)};
      });
}

}  // namespace sherd
