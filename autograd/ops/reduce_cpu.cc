#include "autograd/ops/reduce_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void EqualOnes<T>::run(int64_t begin, int64_t end) const {
  for_lanes<T>(end - begin, [&](int64_t i, int64_t n) {
    const Vec<T> a = load(x + begin + i, n);
    const Vec<T> b = load(y + begin + i, n);
    store(is + begin + i, select_equal(a, b, Vec<T>{} + 1, Vec<T>{}), n);
  });
}

template void EqualOnes<float>::run<kIsa>(int64_t, int64_t) const;
template void EqualOnes<double>::run<kIsa>(int64_t, int64_t) const;
template void EqualOnes<bf16>::run<kIsa>(int64_t, int64_t) const;
template void EqualOnes<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
