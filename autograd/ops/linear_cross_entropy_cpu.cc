#include "autograd/ops/linear_cross_entropy_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void ScaleInPlace<T>::run(int64_t begin, int64_t end) const {
  T* p = x + begin;
  for_lanes<T>(end - begin,
               [&](int64_t i, int64_t n) { store(p + i, load(p + i, n) * splat(factor), n); });
}

template void ScaleInPlace<float>::run<kIsa>(int64_t, int64_t) const;
template void ScaleInPlace<double>::run<kIsa>(int64_t, int64_t) const;
template void ScaleInPlace<bf16>::run<kIsa>(int64_t, int64_t) const;
template void ScaleInPlace<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
