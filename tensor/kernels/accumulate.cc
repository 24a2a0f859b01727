#include "tensor/kernels/accumulate.h"

#include "tensor/kernels/accumulate_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

template <class Total, class X>
bool run(const Tensor& total, const Tensor& x) {
  if (total.dtype() != dtype_of<Total> || x.dtype() != dtype_of<X>) return false;
  launch(*total.runtime(), kernels::Accumulate<Total, X>{total.data<Total>(), x.data<X>()},
         total.numel(), 16384);
  return true;
}

}  // namespace

void accumulate(const Tensor& total, const Tensor& x) {
  check(total.shape() == x.shape() && total.is_contiguous() && x.is_contiguous(),
        "accumulate wants equal contiguous shapes:", total.shape(), "and", x.shape());
  check(run<float, float>(total, x) || run<float, bf16>(total, x) || run<float, f16>(total, x) ||
            run<double, double>(total, x) || run<bf16, bf16>(total, x) || run<f16, f16>(total, x),
        "accumulate does not take", x.dtype(), "into", total.dtype());
  total.storage()->bump_version();
}

}  // namespace sherd
