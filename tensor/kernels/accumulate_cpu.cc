#include "tensor/kernels/accumulate_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

template <class Total, class X>
template <Isa I>
void Accumulate<Total, X>::run(int64_t begin, int64_t end) const {
  Total* t = total + begin;
  const X* a = x + begin;
  for_lanes<Total>(end - begin,
                   [&](int64_t i, int64_t n) { store(t + i, load(t + i, n) + load(a + i, n), n); });
}

template void Accumulate<float, float>::run<kIsa>(int64_t, int64_t) const;
template void Accumulate<float, bf16>::run<kIsa>(int64_t, int64_t) const;
template void Accumulate<float, f16>::run<kIsa>(int64_t, int64_t) const;
template void Accumulate<double, double>::run<kIsa>(int64_t, int64_t) const;
template void Accumulate<bf16, bf16>::run<kIsa>(int64_t, int64_t) const;
template void Accumulate<f16, f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
