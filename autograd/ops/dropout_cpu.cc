#include "autograd/ops/dropout_kernels.h"
#include "tensor/kernels/vec_random.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void Dropout<T>::run(int64_t begin, int64_t end) const {
  using A = sherd::Accumulate<T>;
  const A by = static_cast<A>(factor);
  for (int64_t block = begin; block < end; block += 8) {
    uint32_t words[32];
    words_of(static_cast<uint64_t>(block), seed, stream, words);
    A keep[32];
    for (int j = 0; j < 32; ++j) keep[j] = words[j] >= threshold ? by : A{0};
    const int64_t first = 4 * block;
    int64_t last = 4 * (block + 8 < end ? block + 8 : end);
    last = last < count ? last : count;
    for (int64_t i = first; i < last; i += kLanes<T>) {
      const int64_t n = last - i < kLanes<T> ? last - i : kLanes<T>;
      const Vec<T> k = load(keep + (i - first));
      // Not a product with 0, which would keep a NaN.
      store(y + i, select_equal(k, Vec<T>{}, Vec<T>{}, load(x + i, n) * k), n);
    }
  }
}

template void Dropout<float>::run<kIsa>(int64_t, int64_t) const;
template void Dropout<double>::run<kIsa>(int64_t, int64_t) const;
template void Dropout<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Dropout<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
