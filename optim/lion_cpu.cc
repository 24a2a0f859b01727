#include "optim/lion_kernels.h"
#include "optim/update.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void Lion<T>::run(int64_t begin, int64_t end) const {
  const Vec<R> one_minus_beta1 = splat(1 - beta1);
  const Vec<R> one_minus_beta2 = splat(1 - beta2);
  const Vec<R> zero{}, up = splat(lr);
  Vec<R> spoilt{};  // turns to NaN and stays so
  for_lanes<R>(end - begin, [&](int64_t at, int64_t n) {
    const int64_t i = begin + at;
    const Vec<R> g = load(grad + i, n) * grad_scale;
    const Vec<R> m0 = load(m + i, n);
    const Vec<R> direction = m0 * beta1 + g * one_minus_beta1;
    const Vec<R> move = select_less(zero, direction, up, select_less(direction, zero, -up, zero));
    const Vec<R> p = load_value<T>(value + i, master + i, n) * decay - move;
    store(m + i, m0 * beta2 + g * one_minus_beta2, n);
    store_value<T>(value + i, master + i, p, n);
    spoilt += g - g;
  });
  if (sum(spoilt) != 0) *not_finite = true;
}

template void Lion<float>::run<kIsa>(int64_t, int64_t) const;
template void Lion<double>::run<kIsa>(int64_t, int64_t) const;
template void Lion<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Lion<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
