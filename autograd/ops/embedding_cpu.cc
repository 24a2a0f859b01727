#include "autograd/ops/embedding_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

template <class T, class Index>
template <Isa I>
void EmbeddingBackward<T, Index>::run(int64_t begin, int64_t end) const {
  for (int64_t n = 0; n < count; ++n) {
    const T* d = dy + n * columns + begin;
    Accumulate<T>* t = total + indices[n] * columns + begin;
    for_lanes<T>(end - begin,
                 [&](int64_t i, int64_t k) { store(t + i, load(t + i, k) + load(d + i, k), k); });
  }
}

template void EmbeddingBackward<float, int32_t>::run<kIsa>(int64_t, int64_t) const;
template void EmbeddingBackward<double, int32_t>::run<kIsa>(int64_t, int64_t) const;
template void EmbeddingBackward<bf16, int32_t>::run<kIsa>(int64_t, int64_t) const;
template void EmbeddingBackward<f16, int32_t>::run<kIsa>(int64_t, int64_t) const;
template void EmbeddingBackward<float, int64_t>::run<kIsa>(int64_t, int64_t) const;
template void EmbeddingBackward<double, int64_t>::run<kIsa>(int64_t, int64_t) const;
template void EmbeddingBackward<bf16, int64_t>::run<kIsa>(int64_t, int64_t) const;
template void EmbeddingBackward<f16, int64_t>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
