#include "optim/sgd_kernels.h"
#include "optim/update.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void Sgd<T>::run(int64_t begin, int64_t end) const {
  Vec<R> spoilt{};  // turns to NaN and stays so
  for_lanes<R>(end - begin, [&](int64_t at, int64_t n) {
    const int64_t i = begin + at;
    const Vec<R> g = load(grad + i, n) * grad_scale;
    const Vec<R> p = load_value<T>(value + i, master + i, n);
    Vec<R> direction = g + p * weight_decay;
    if (momentum_sum != nullptr) {
      const Vec<R> s = load(momentum_sum + i, n) * momentum + direction;
      store(momentum_sum + i, s, n);
      direction = nesterov ? direction + s * momentum : s;
    }
    store_value<T>(value + i, master + i, p - direction * lr, n);
    spoilt += g - g;
  });
  if (sum(spoilt) != 0) *not_finite = true;
}

template void Sgd<float>::run<kIsa>(int64_t, int64_t) const;
template void Sgd<double>::run<kIsa>(int64_t, int64_t) const;
template void Sgd<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Sgd<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
