#include "optim/grad_clip_kernels.h"
#include "tensor/kernels/vec_math.h"

namespace sherd::kernels {

namespace {

/// The first n ≤ 8 elements as f64, zeros behind them.
[[gnu::always_inline]] inline F64x8 load_wide(const float* p, int64_t n) {
  float x[8] = {};
  for (int64_t i = 0; i < n; ++i) x[i] = p[i];
  return convert<F64x8>(load_bits<By8<float>>(x));
}
[[gnu::always_inline]] inline F64x8 load_wide(const float* p) {
  return convert<F64x8>(load_bits<By8<float>>(p));
}
[[gnu::always_inline]] inline F64x8 load_wide(const double* p, int64_t n) { return load_n(p, n); }
[[gnu::always_inline]] inline F64x8 load_wide(const double* p) { return load(p); }

template <class T>
[[gnu::always_inline]] inline double sum_of_squares(const T* x, int64_t n) {
  F64x8 a{}, b{}, c{}, d{};  // four chains, so that additions need not wait for each other
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const F64x8 xa = load_wide(x + i), xb = load_wide(x + i + 8);
    const F64x8 xc = load_wide(x + i + 16), xd = load_wide(x + i + 24);
    a += xa * xa;
    b += xb * xb;
    c += xc * xc;
    d += xd * xd;
  }
  for (; i < n; i += 8) {
    const F64x8 xa = n - i >= 8 ? load_wide(x + i) : load_wide(x + i, n - i);
    a += xa * xa;
  }
  return sum((a + b) + (c + d));
}

template <class T>
[[gnu::always_inline]] inline double largest(const T* x, int64_t n) {
  F64x8 most{}, spoilt{};
  for (int64_t i = 0; i < n; i += 8) {
    const F64x8 v = n - i >= 8 ? load_wide(x + i) : load_wide(x + i, n - i);
    most = max(abs(v), most);
    spoilt += v - v;
  }
  return sum(spoilt) != 0 ? __builtin_inf() : max(most);
}

}  // namespace

template <class T>
template <Isa I>
void SegmentSquares<T>::run(int64_t begin, int64_t end) const {
  if (columns == 1) {  // a bias: the same bits, sooner
    for (int64_t i = begin; i < end; ++i) {
      const auto wide = static_cast<double>(x[i]);
      sums[i - begin] = wide * wide;
    }
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first = i % per_row * segment;
    const int64_t left = columns - first;
    sums[i - begin] =
        sum_of_squares(x + i / per_row * columns + first, left < segment ? left : segment);
  }
}

template <class T>
template <Isa I>
void SegmentMaxima<T>::run(int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first = i % per_row * segment;
    const int64_t left = columns - first;
    maxima[i - begin] = largest(x + i / per_row * columns + first, left < segment ? left : segment);
  }
}

template void SegmentSquares<float>::run<kIsa>(int64_t, int64_t) const;
template void SegmentSquares<double>::run<kIsa>(int64_t, int64_t) const;
template void SegmentMaxima<float>::run<kIsa>(int64_t, int64_t) const;
template void SegmentMaxima<double>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
