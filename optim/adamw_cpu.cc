#include "optim/adamw_kernels.h"
#include "optim/update.h"

namespace sherd::kernels {

template <class T, class M>
template <Isa I>
void AdamW<T, M>::run(int64_t begin, int64_t end) const {
  const Vec<R> one_minus_beta1 = splat(1 - beta1);
  const Vec<R> one_minus_beta2 = splat(1 - beta2);
  RandomWords random(seed, stream);
  Vec<R> spoilt{};  // turns to NaN and stays so
  for_lanes<R>(end - begin, [&](int64_t at, int64_t n) {
    const int64_t i = begin + at;
    const Vec<R> g = load(grad + i, n) * grad_scale;
    const Vec<R> m1 = load(m + i, n) * beta1 + g * one_minus_beta1;
    const Vec<R> v1 = load(v + i, n) * beta2 + g * g * one_minus_beta2;
    const Vec<R> p = load_value<T>(value + i, master + i, n) * decay -
                     m1 * step_size / (sqrt(v1) * correction + eps);
    if constexpr (sizeof(M) == 2) {
      const U32x16 words = random.at(static_cast<uint64_t>(i + shift));
      store_rounded_at_random(m + i, m1, words & 0xffffu, n);
      store_rounded_at_random(v + i, v1, words >> 16, n);
    } else {
      store(m + i, m1, n);
      store(v + i, v1, n);
    }
    store_value<T>(value + i, master + i, p, n);
    spoilt += g - g;
  });
  if (sum(spoilt) != 0) *not_finite = true;
}

template void AdamW<float, float>::run<kIsa>(int64_t, int64_t) const;
template void AdamW<double, double>::run<kIsa>(int64_t, int64_t) const;
template void AdamW<bf16, float>::run<kIsa>(int64_t, int64_t) const;
template void AdamW<f16, float>::run<kIsa>(int64_t, int64_t) const;
template void AdamW<float, bf16>::run<kIsa>(int64_t, int64_t) const;
template void AdamW<bf16, bf16>::run<kIsa>(int64_t, int64_t) const;
template void AdamW<f16, bf16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
