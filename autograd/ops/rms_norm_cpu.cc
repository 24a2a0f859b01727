#include "autograd/ops/rms_norm_kernels.h"
#include "tensor/kernels/vec_rows.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void RmsNorm<T>::run(int64_t begin, int64_t end) const {
  const auto n = static_cast<A>(columns);
  for (int64_t row = begin; row < end; ++row) {
    const T* xr = x + row * columns;
    T* yr = y + row * columns;
    const A squares = sum_of<T>(columns, [&](int64_t i, int64_t k) {
      const Vec<T> v = load(xr + i, k);
      return v * v;
    });
    const A r = A{1} / sqrt(splat(squares / n + eps))[0];
    rstd[row] = r;
    for_lanes<T>(columns, [&](int64_t i, int64_t k) {
      Vec<T> v = load(xr + i, k) * splat(r);
      if (weight != nullptr) v *= load(weight + i, k);
      store(yr + i, v, k);
    });
  }
}

/// With g = dy · weight and h = x · rstd: dx = rstd · (g - h · mean(g · h)).
template <class T>
template <Isa I>
void RmsNormBackward<T>::run(int64_t begin, int64_t end) const {
  const auto n = static_cast<A>(columns);
  for (int64_t part = begin; part < end; ++part) {
    A* dw = dweight_parts == nullptr ? nullptr : dweight_parts + part * columns;
    if (dw != nullptr)
      for (int64_t i = 0; i < columns; ++i) dw[i] = 0;
    const int64_t first = part * rows_per_part;
    const int64_t last = first + rows_per_part < rows ? first + rows_per_part : rows;
    for (int64_t row = first; row < last; ++row) {
      const T* xr = x + row * columns;
      const T* dyr = dy + row * columns;
      const Vec<T> r = splat(rstd[row]);
      Vec<T> sum_gh = {};
      for_lanes<T>(columns, [&](int64_t i, int64_t k) {
        const Vec<T> dh = load(dyr + i, k) * (load(xr + i, k) * r);  // zeros in a tail, as dy is
        sum_gh += weight == nullptr ? dh : dh * load(weight + i, k);
        if (dw != nullptr) store(dw + i, load(dw + i, k) + dh, k);
      });
      if (dx == nullptr) continue;
      T* dxr = dx + row * columns;
      const Vec<T> mean_gh = splat(sum(sum_gh) / n);
      for_lanes<T>(columns, [&](int64_t i, int64_t k) {
        const Vec<T> h = load(xr + i, k) * r;
        const Vec<T> d = load(dyr + i, k);
        const Vec<T> g = weight == nullptr ? d : d * load(weight + i, k);
        store(dxr + i, (g - h * mean_gh) * r, k);
      });
    }
  }
}

template void RmsNorm<float>::run<kIsa>(int64_t, int64_t) const;
template void RmsNorm<double>::run<kIsa>(int64_t, int64_t) const;
template void RmsNorm<bf16>::run<kIsa>(int64_t, int64_t) const;
template void RmsNorm<f16>::run<kIsa>(int64_t, int64_t) const;
template void RmsNormBackward<float>::run<kIsa>(int64_t, int64_t) const;
template void RmsNormBackward<double>::run<kIsa>(int64_t, int64_t) const;
template void RmsNormBackward<bf16>::run<kIsa>(int64_t, int64_t) const;
template void RmsNormBackward<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
