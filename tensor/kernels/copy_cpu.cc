#include "tensor/kernels/copy_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

template <class From, class To>
template <Isa I>
void Convert<From, To>::run(int64_t begin, int64_t end) const {
  const From* x = from + begin;
  To* y = to + begin;
  for_lanes<float>(end - begin, [&](int64_t i, int64_t n) { store(y + i, load(x + i, n), n); });
}

template void Convert<float, bf16>::run<kIsa>(int64_t, int64_t) const;
template void Convert<bf16, float>::run<kIsa>(int64_t, int64_t) const;
template void Convert<float, f16>::run<kIsa>(int64_t, int64_t) const;
template void Convert<f16, float>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
