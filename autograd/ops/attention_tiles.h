// The arithmetic of attention's tiles: a register-blocked product, 2^x, packing. Only
// attention_cpu.cc includes this, once per instruction set; like vec.h, it emits nothing that
// another level could share.
#pragma once

#include <cstdint>

#include "tensor/kernels/vec.h"

namespace sherd {
namespace {

/// Rows and vectors of the accumulators that a product keeps in registers.
inline constexpr int kRows = kIsa == Isa::base ? 2 : 6;
inline constexpr int kVecs = kIsa >= Isa::avx512 ? 4 : 1;

/// Vectors in a panel of keys, whatever the level.
inline constexpr int kPanelVecs = 4;
template <class F>
inline constexpr int64_t kPanel = kPanelVecs* kLanes<F>;

[[gnu::always_inline]] inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
[[gnu::always_inline]] inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
/// The multiple of `step` at or above x ≥ 0.
[[gnu::always_inline]] inline int64_t round_up(int64_t x, int64_t step) {
  return (x + step - 1) / step * step;
}

/// done(row, vec, Σ_i a[row, i] b[i, vec]) for kRows rows and C vectors, i < k in order.
/// a[row, i] = a[row · row_step + i · step]; b's rows are ldb apart.
template <int C, class F, class Done>
[[gnu::always_inline]] inline void product_of(const F* a, int64_t row_step, int64_t step,
                                              const F* b, int64_t ldb, int64_t k,
                                              const Done& done) {
  Vec<F> sums[kRows][C] = {};
  for (int64_t i = 0; i < k; ++i) {
    Vec<F> row[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) row[c] = load(b + i * ldb + c * kLanes<F>);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec<F> x = splat(a[r * row_step + i * step]);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sums[r][c] += x * row[c];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) done(r, c, sums[r][c]);
}

template <int N>
struct Width {
  static constexpr int value = N;
};

/// The same for any number of vectors; done(row, vec, sum) with vec counted from 0.
template <class F, class Done>
[[gnu::always_inline]] inline void product(const F* a, int64_t row_step, int64_t step, const F* b,
                                           int64_t ldb, int64_t k, int64_t vecs, const Done& done) {
  int64_t v = 0;
  const auto part = [&](auto width) __attribute__((always_inline)) {
    constexpr int C = decltype(width)::value;
    product_of<C>(
        a, row_step, step, b + v * kLanes<F>, ldb,
        k, [&](int r, int c, Vec<F> sum) __attribute__((always_inline)) { done(r, v + c, sum); });
    v += C;
  };
  while (v < vecs) {
    const int64_t left = vecs - v;
    if constexpr (kVecs >= 4) {
      if (left == 3 || left == 5 || left == 6) {
        part(Width<3>{});
        continue;
      }
      if (left >= 4) {
        part(Width<4>{});
        continue;
      }
      if (left == 2) {
        part(Width<2>{});
        continue;
      }
    }
    part(Width<1>{});
  }
}

/// 2^x, x < 128; exactly 0 below -127, NaN for NaN. Relative error 8e-8.
[[gnu::always_inline]] inline F32x16 exp2(F32x16 x) {
  x = x < splat(-127.0f) ? splat(-127.0f) : x;
  // Adding 1.5·2^23 leaves the nearest integer in the low bits; 127 biases the exponent.
  const F32x16 shift = splat(12582912.0f + 127.0f);
  const F32x16 shifted = x + shift;
  const F32x16 f = x - (shifted - shift);
  F32x16 p = splat(1.5594677549532598e-4f);  // minimax on [-1/2, 1/2] with p(0) = 1
  p = p * f + splat(1.340664390505534e-3f);
  p = p * f + splat(9.61769297489049e-3f);
  p = p * f + splat(5.5503105509957955e-2f);
  p = p * f + splat(0.24022652782876092f);
  p = p * f + splat(0.6931472149680394f);
  p = p * f + splat(1.0f);
  return p * __builtin_bit_cast(F32x16, __builtin_bit_cast(U32x16, shifted) << 23);
}
[[gnu::always_inline]] inline F64x8 exp2(F64x8 x) {
  F64x8 y;
  for (int i = 0; i < 8; ++i) y[i] = __builtin_exp2(x[i]);
  return y;
}

[[gnu::always_inline]] inline float log2_of(float x) { return __builtin_log2f(x); }
[[gnu::always_inline]] inline double log2_of(double x) { return __builtin_log2(x); }

/// The largest lane, of which NaN is none.
template <class F>
[[gnu::always_inline]] inline F largest(Vec<F> v) {
  F x[kLanes<F>];
  store(x, v);
  for (int w = kLanes<F> / 2; w > 0; w /= 2)
    for (int i = 0; i < w; ++i) x[i] = x[i] > x[i + w] ? x[i] : x[i + w];
  return x[0];
}

/// 0, 1, 2, …
[[gnu::always_inline]] inline F32x16 iota(float) {
  return F32x16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}
[[gnu::always_inline]] inline F64x8 iota(double) { return F64x8{0, 1, 2, 3, 4, 5, 6, 7}; }

/// v where lane < count, else `other`.
template <class F>
[[gnu::always_inline]] inline Vec<F> first_lanes(Vec<F> v, int64_t count, F other) {
  return iota(F{}) < splat(static_cast<F>(count)) ? v : splat(other);
}

/// Where lane i of the result comes from when `Step` columns of two rows trade places: the first
/// row keeps what is in place and takes the rest from the second (16 + lane), or the reverse.
template <int Step>
constexpr int kept(int i) {
  return (i & Step) == 0 ? i : 16 + i - Step;
}
template <int Step>
constexpr int moved(int i) {
  return (i & Step) == 0 ? i + Step : 16 + i;
}
template <int S>
[[gnu::always_inline]] inline void trade(F32x16 (&rows)[16]) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if ((i & S) != 0) continue;
    const F32x16 a = rows[i];
    const F32x16 b = rows[i + S];
    rows[i] = __builtin_shufflevector(a, b, kept<S>(0), kept<S>(1), kept<S>(2), kept<S>(3),
                                      kept<S>(4), kept<S>(5), kept<S>(6), kept<S>(7), kept<S>(8),
                                      kept<S>(9), kept<S>(10), kept<S>(11), kept<S>(12),
                                      kept<S>(13), kept<S>(14), kept<S>(15));
    rows[i + S] = __builtin_shufflevector(a, b, moved<S>(0), moved<S>(1), moved<S>(2), moved<S>(3),
                                          moved<S>(4), moved<S>(5), moved<S>(6), moved<S>(7),
                                          moved<S>(8), moved<S>(9), moved<S>(10), moved<S>(11),
                                          moved<S>(12), moved<S>(13), moved<S>(14), moved<S>(15));
  }
}
/// rows[i][j] ↔ rows[j][i]
[[gnu::always_inline]] inline void transpose(F32x16 (&rows)[16]) {
  trade<8>(rows);
  trade<4>(rows);
  trade<2>(rows);
  trade<1>(rows);
}

/// out[r · ld + d] = factor · x[r · step + d] for d < D, zeros up to ld. Rows where
/// !seen[r] and rows from n to `rows` are zeros.
template <class F, class T>
void pack_rows(const T* x, int64_t step, int64_t n, int64_t rows, int64_t D, F factor,
               const bool* seen, F* out, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) {
    F* to = out + r * ld;
    if (r >= n || (seen != nullptr && !seen[r])) {
      for (int64_t d = 0; d < ld; d += kLanes<F>) store(to + d, Vec<F>{});
      continue;
    }
    const T* from = x + r * step;
    for (int64_t d = 0; d < ld; d += kLanes<F>)
      store(to + d, factor * load(from + d, smaller(kLanes<F>, D - d)));
  }
}

/// The transpose of n rows in panels of kPanel columns: out[panel][d][column], column r of the
/// panels is row r of x. Zeros where !seen[r], and from column n to `columns` and a vector's end.
template <class F, class T>
void pack_panels(const T* x, int64_t step, int64_t n, int64_t columns, int64_t D, const bool* seen,
                 F* out) {
  constexpr int64_t L = kLanes<F>;
  for (int64_t r0 = 0; r0 < columns; r0 += L) {
    F* to = out + r0 / kPanel<F> * kPanel<F> * D + r0 % kPanel<F>;
    for (int64_t d0 = 0; d0 < D; d0 += L) {
      const int64_t width = smaller(L, D - d0);
      Vec<F> rows[L];
      for (int64_t i = 0; i < L; ++i) {
        const int64_t r = r0 + i;
        const bool zero = r >= n || (seen != nullptr && !seen[r]);
        rows[i] = zero ? Vec<F>{} : load(x + r * step + d0, width);
      }
      if constexpr (kIsa >= Isa::avx512 && L == 16) {
        transpose(rows);
        for (int64_t d = 0; d < width; ++d) store(to + (d0 + d) * kPanel<F>, rows[d]);
      } else {
        for (int64_t d = 0; d < width; ++d)
          for (int64_t i = 0; i < L; ++i) to[(d0 + d) * kPanel<F> + i] = rows[i][d];
      }
    }
  }
}

}  // namespace
}  // namespace sherd
