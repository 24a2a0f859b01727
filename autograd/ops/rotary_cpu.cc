#include "autograd/ops/rotary_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void Rotary<T>::run(int64_t begin, int64_t end) const {
  const int64_t half = head_dim / 2;
  for (int64_t row = begin; row < end; ++row) {
    const A* cosines = table + row % positions * head_dim;
    const A* sines = cosines + half;
    const T* xr = x + row * heads * head_dim;
    T* yr = y + row * heads * head_dim;
    for (int64_t h = 0; h < turned_heads; ++h, xr += head_dim, yr += head_dim)
      for_lanes<T>(half, [&](int64_t i, int64_t n) {
        const Vec<T> a = load(xr + i, n), b = load(xr + half + i, n);
        const Vec<T> c = load(cosines + i, n), s = load(sines + i, n) * turn;
        store(yr + i, a * c - b * s, n);
        store(yr + half + i, b * c + a * s, n);
      });
    for (int64_t i = 0; i < (heads - turned_heads) * head_dim; ++i) yr[i] = xr[i];
  }
}

template void Rotary<float>::run<kIsa>(int64_t, int64_t) const;
template void Rotary<double>::run<kIsa>(int64_t, int64_t) const;
template void Rotary<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Rotary<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
