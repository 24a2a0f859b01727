#include "autograd/ops/layer_norm_kernels.h"
#include "tensor/kernels/vec_rows.h"

namespace sherd::kernels {

namespace {

[[gnu::always_inline]] inline float root(float x) { return __builtin_sqrtf(x); }
[[gnu::always_inline]] inline double root(double x) { return __builtin_sqrt(x); }

}  // namespace

template <class T>
template <Isa I>
void LayerNorm<T>::run(int64_t begin, int64_t end) const {
  const auto n = static_cast<A>(columns);
  for (int64_t row = begin; row < end; ++row) {
    const T* xr = x + row * columns;
    T* yr = y + row * columns;
    const A m = sum_of<T>(columns, [&](int64_t i, int64_t k) { return load(xr + i, k); }) / n;
    const A variance = sum_of<T>(columns,
                                 [&](int64_t i, int64_t k) {
                                   const Vec<T> d = load(xr + i, k) - splat(m);
                                   return d * d;
                                 }) /
                       n;
    const A r = A{1} / root(variance + eps);
    mean[row] = m;
    rstd[row] = r;
    for_lanes<T>(columns, [&](int64_t i, int64_t k) {
      Vec<T> v = (load(xr + i, k) - splat(m)) * splat(r);
      if (weight != nullptr) v *= load(weight + i, k);
      if (bias != nullptr) v += load(bias + i, k);
      store(yr + i, v, k);
    });
  }
}

/// With g = dy · weight and h = (x - mean) · rstd: dx = rstd · (g - mean(g) - h · mean(g · h)).
template <class T>
template <Isa I>
void LayerNormBackward<T>::run(int64_t begin, int64_t end) const {
  const auto n = static_cast<A>(columns);
  for (int64_t part = begin; part < end; ++part) {
    A* dw = dweight_parts == nullptr ? nullptr : dweight_parts + part * columns;
    A* db = dbias_parts == nullptr ? nullptr : dbias_parts + part * columns;
    if (dw != nullptr)
      for (int64_t i = 0; i < columns; ++i) dw[i] = db[i] = 0;
    const int64_t first = part * rows_per_part;
    const int64_t last = first + rows_per_part < rows ? first + rows_per_part : rows;
    for (int64_t row = first; row < last; ++row) {
      const T* xr = x + row * columns;
      const T* dyr = dy + row * columns;
      const Vec<T> m = splat(mean[row]);
      const Vec<T> r = splat(rstd[row]);
      Vec<T> sum_g = {};
      Vec<T> sum_gh = {};
      for_lanes<T>(columns, [&](int64_t i, int64_t k) {
        const Vec<T> h = (load(xr + i, k) - m) * r;
        const Vec<T> d = load(dyr + i, k);
        const Vec<T> g = weight == nullptr ? d : d * load(weight + i, k);
        sum_g += g;  // zeros in a tail, as dy is
        sum_gh += g * h;
        if (dw != nullptr) {
          store(dw + i, load(dw + i, k) + d * h, k);
          store(db + i, load(db + i, k) + d, k);
        }
      });
      if (dx == nullptr) continue;
      T* dxr = dx + row * columns;
      const Vec<T> mean_g = splat(sum(sum_g) / n);
      const Vec<T> mean_gh = splat(sum(sum_gh) / n);
      for_lanes<T>(columns, [&](int64_t i, int64_t k) {
        const Vec<T> h = (load(xr + i, k) - m) * r;
        const Vec<T> d = load(dyr + i, k);
        const Vec<T> g = weight == nullptr ? d : d * load(weight + i, k);
        store(dxr + i, (g - mean_g - h * mean_gh) * r, k);
      });
    }
  }
}

template <class A>
template <Isa I>
void SumParts<A>::run(int64_t begin, int64_t end) const {
  for_lanes<A>(end - begin, [&](int64_t i, int64_t k) {
    const A* p = parts + begin + i;
    Vec<A> s = {};
    for (int64_t j = 0; j < count; ++j) s += load(p + j * columns, k);
    store(total + begin + i, s, k);
  });
}

template void LayerNorm<float>::run<kIsa>(int64_t, int64_t) const;
template void LayerNorm<double>::run<kIsa>(int64_t, int64_t) const;
template void LayerNorm<bf16>::run<kIsa>(int64_t, int64_t) const;
template void LayerNorm<f16>::run<kIsa>(int64_t, int64_t) const;
template void LayerNormBackward<float>::run<kIsa>(int64_t, int64_t) const;
template void LayerNormBackward<double>::run<kIsa>(int64_t, int64_t) const;
template void LayerNormBackward<bf16>::run<kIsa>(int64_t, int64_t) const;
template void LayerNormBackward<f16>::run<kIsa>(int64_t, int64_t) const;
template void SumParts<float>::run<kIsa>(int64_t, int64_t) const;
template void SumParts<double>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
