// The arithmetic of attention's tiles: a register-blocked product, 2^x, packing. Only
// attention_cpu.cc includes this, once per instruction set; like vec.h, it emits nothing that
// another level could share.
#pragma once

#include <cstdint>
#include <utility>

#include "tensor/kernels/vec_math.h"

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

/// One operand of a product and its result: c[row] (op)= Σ_i a[row, i] b[i], i < k in order, where
/// a[row, i] = a[row · row_step + i · step] and b's and c's rows are ldb and ldc apart.
template <class F>
struct Product {
  const F* a;
  int64_t row_step, step;
  const F* b;
  int64_t ldb;
  int64_t k;
  F* c;
  int64_t ldc;
};

/// kRows rows and C vectors from `first` on; finish(row, to, sum) ends each, and is to be short:
/// what it needs in registers is taken from the sums.
template <int C, class F, class Finish>
[[gnu::always_inline]] inline void product_of(const Product<F>& p, int64_t first,
                                              const Finish& finish) {
  Vec<F> sums[kRows][C] = {};
  const F* a = p.a;
  const F* b = p.b + first;
  for (int64_t i = 0; i < p.k; ++i, a += p.step, b += p.ldb) {
    Vec<F> row[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) row[c] = load(b + c * kLanes<F>);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec<F> x = splat(a[r * p.row_step]);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sums[r][c] += x * row[c];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) finish(r, p.c + r * p.ldc + first + c * kLanes<F>, sums[r][c]);
}

template <class F, class Finish>
[[gnu::always_inline]] inline void product(const Product<F>& p, int64_t vecs,
                                           const Finish& finish) {
  constexpr int64_t L = kLanes<F>;
  int64_t v = 0;
  if constexpr (kVecs >= 4) {
    // 5 and 6 are better cut in two near halves than to leave one or two vectors.
    for (; vecs - v >= 4 && vecs - v != 5 && vecs - v != 6; v += 4) product_of<4>(p, v * L, finish);
    for (; vecs - v >= 3; v += 3) product_of<3>(p, v * L, finish);
    for (; vecs - v >= 2; v += 2) product_of<2>(p, v * L, finish);
  }
  for (; v < vecs; ++v) product_of<1>(p, v * L, finish);
}

/// c = a b, kRows rows.
template <class F>
[[gnu::noinline]] void multiply(const Product<F>& p, int64_t vecs) {
  product(
      p, vecs, [](int, F* to, Vec<F> sum) __attribute__((always_inline)) { store(to, sum); });
}

/// c += a b
template <class F>
[[gnu::noinline]] void multiply_add(const Product<F>& p, int64_t vecs) {
  product(
      p, vecs,
      [](int, F* to, Vec<F> sum) __attribute__((always_inline)) { store(to, load(to) + sum); });
}

/// c[row] = factor[row] · c[row] + a b
template <class F>
[[gnu::noinline]] void scale_multiply_add(const Product<F>& p, int64_t vecs, const F* factor) {
  product(
      p, vecs, [factor](int r, F* to, Vec<F> sum) __attribute__((always_inline)) {
        store(to, load(to) * splat(factor[r]) + sum);
      });
}

/// 2^x, x < 128; exactly 0 below -127, NaN for NaN. Relative error 8e-8.
[[gnu::always_inline]] inline F32x16 exp2(F32x16 x) {
  x = select_less(x, splat(-127.0f), splat(-127.0f), x);
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
  return p * bits_as<F32x16>(bits_as<U32x16>(shifted) << 23);
}
[[gnu::always_inline]] inline F64x8 exp2(F64x8 x) {
  return by_lane(x, [](double lane) { return __builtin_exp2(lane); });
}

[[gnu::always_inline]] inline float log2_of(float x) { return __builtin_log2f(x); }
[[gnu::always_inline]] inline double log2_of(double x) { return __builtin_log2(x); }

/// The largest lane, of which NaN is none.
template <class V>
[[gnu::always_inline]] inline ElementOf<V> largest(V v) {
  if constexpr (kCount<V> == 16 && !kIsHalves<V>) {
    v = max(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    v = max(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    v = max(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    v = max(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
    return v[0];
  } else {
    return max(v);
  }
}

/// Sum of the lanes, in the order of vec.h's sum.
template <class V>
[[gnu::always_inline]] inline ElementOf<V> total(V v) {
  if constexpr (kCount<V> == 16 && !kIsHalves<V>) {
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    return v[0];
  } else {
    return sum(v);
  }
}

/// 0, 1, 2, …
template <class F>
inline constexpr F kIota[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// v where lane < count, else `other`.
template <class F>
[[gnu::always_inline]] inline Vec<F> first_lanes(Vec<F> v, int64_t count, F other) {
  return select_less(load(kIota<F>), splat(static_cast<F>(count)), v, splat(other));
}

/// Where lane i of the result comes from when `Step` columns of two rows trade places: the first
/// row keeps what is in place and takes the rest from the second (`lanes` + lane), or the reverse.
template <int Step, int lanes>
constexpr int kept(int i) {
  return (i & Step) == 0 ? i : lanes + i - Step;
}
template <int Step, int lanes>
constexpr int moved(int i) {
  return (i & Step) == 0 ? i + Step : lanes + i;
}
template <int S, int... i, class V>
[[gnu::always_inline]] inline V kept_of(std::integer_sequence<int, i...>, V a, V b) {
  return __builtin_shufflevector(a, b, kept<S, kCount<V>>(i)...);
}
template <int S, int... i, class V>
[[gnu::always_inline]] inline V moved_of(std::integer_sequence<int, i...>, V a, V b) {
  return __builtin_shufflevector(a, b, moved<S, kCount<V>>(i)...);
}
template <int S, class V>
[[gnu::always_inline]] inline V kept_of(V a, V b) {
  if constexpr (!kIsHalves<V>)
    return kept_of<S>(std::make_integer_sequence<int, kCount<V>>{}, a, b);
  else if constexpr (S == kCount<V> / 2)
    return {a.low, b.low};
  else
    return {kept_of<S>(a.low, b.low), kept_of<S>(a.high, b.high)};
}
template <int S, class V>
[[gnu::always_inline]] inline V moved_of(V a, V b) {
  if constexpr (!kIsHalves<V>)
    return moved_of<S>(std::make_integer_sequence<int, kCount<V>>{}, a, b);
  else if constexpr (S == kCount<V> / 2)
    return {a.high, b.high};
  else
    return {moved_of<S>(a.low, b.low), moved_of<S>(a.high, b.high)};
}
template <int S, class V, int n>
[[gnu::always_inline]] inline void trade(V (&rows)[n]) {
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if ((i & S) != 0) continue;
    const V a = rows[i];
    const V b = rows[i + S];
    rows[i] = kept_of<S>(a, b);
    rows[i + S] = moved_of<S>(a, b);
  }
}
/// Half as many rows: lanes with bit S of rows[i] now belong to what was rows[i + S].
template <int S, class V, int n>
[[gnu::always_inline]] inline void fold(V (&rows)[n]) {
#pragma GCC unroll 8
  for (int i = 0; i < S; ++i)
    rows[i] = kept_of<S>(rows[i], rows[i + S]) + moved_of<S>(rows[i], rows[i + S]);
}
/// rows[i][j] ↔ rows[j][i]
template <class V, int n>
[[gnu::always_inline]] inline void transpose(V (&rows)[n]) {
  if constexpr (n > 8) trade<8>(rows);
  if constexpr (n > 4) trade<4>(rows);
  trade<2>(rows);
  trade<1>(rows);
}

/// Lane i is the sum of rows[i].
template <class V, int n>
[[gnu::always_inline]] inline V sum_each(V (&rows)[n]) {
  if constexpr (n > 8) fold<8>(rows);
  fold<4>(rows);
  fold<2>(rows);
  fold<1>(rows);
  return rows[0];
}

/// Asks for a row that is read soon: rows are far apart, where the processor does not look ahead.
template <class T>
[[gnu::always_inline]] inline void prefetch_row(const T* row, int64_t D) {
  for (int64_t d = 0; d < D; d += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(row + d);
}
template <class T>
[[gnu::always_inline]] inline void prefetch_to_write(const T* row, int64_t D) {
  for (int64_t d = 0; d < D; d += 64 / static_cast<int64_t>(sizeof(T)))
    __builtin_prefetch(row + d, 1);
}
inline constexpr int64_t kAhead = 8;  // rows

/// out[r · ld + d] = factor · x[r · step + d] for d < D, zeros up to ld. Rows where !seen[r] and
/// rows from n to `rows` are zeros.
template <class F, class T>
void pack_rows(const T* x, int64_t step, int64_t n, int64_t rows, int64_t D, F factor,
               const bool* seen, F* out, int64_t ld) {
  constexpr int64_t L = kLanes<F>;
  for (int64_t r = 0; r < rows; ++r) {
    F* to = out + r * ld;
    if (r >= n || (seen != nullptr && !seen[r])) {
      for (int64_t d = 0; d < ld; d += L) store(to + d, Vec<F>{});
      continue;
    }
    const T* from = x + r * step;
    if (r + kAhead < n) prefetch_row(from + kAhead * step, D);
    int64_t d = 0;
    for (; d + L <= D; d += L) store(to + d, factor * load(from + d));
    if (d < D) store(to + d, factor * load_n(from + d, D - d));
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
    const bool full = r0 + L <= n && seen == nullptr;
    for (int64_t i = 0; i < L && r0 + L + i < n; ++i) prefetch_row(x + (r0 + L + i) * step, D);
    for (int64_t d0 = 0; d0 < D; d0 += L) {
      const int64_t width = smaller(L, D - d0);
      Vec<F> rows[L];
      if (full && width == L) {
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) rows[i] = load(x + (r0 + i) * step + d0);
      } else {
        for (int64_t i = 0; i < L; ++i) {
          const int64_t r = r0 + i;
          const bool zero = r >= n || (seen != nullptr && !seen[r]);
          rows[i] = zero ? Vec<F>{} : load(x + r * step + d0, width);
        }
      }
      transpose(rows);
      if (width == L) {
#pragma GCC unroll 16
        for (int d = 0; d < L; ++d) store(to + (d0 + d) * kPanel<F>, rows[d]);
      } else {
        for (int64_t d = 0; d < width; ++d) store(to + (d0 + d) * kPanel<F>, rows[d]);
      }
    }
  }
}

/// Rows to ask for while something else computes; `write`: they will be written.
struct Stream {
  const char* row = nullptr;
  int64_t step_bytes = 0;
  int64_t rows = 0;
  bool write = false;
};

/// Asks for a few rows of each stream at every step, as the processor cannot fetch many at once.
struct Ahead {
  Stream streams[4];
  int64_t row_bytes = 0;
  int64_t next = 0;

  [[gnu::always_inline]] void step() {
    constexpr int64_t kAtOnce = 4;
    for (const Stream& s : streams) {
      const int64_t end = smaller(s.rows, next + kAtOnce);
      for (int64_t r = next; r < end; ++r) {
        const char* const row = s.row + r * s.step_bytes;
        for (int64_t i = 0; i < row_bytes; i += 64) {
          if (s.write)
            __builtin_prefetch(row + i, 1);
          else
            __builtin_prefetch(row + i, 0, 2);
        }
      }
    }
    next += kAtOnce;
  }
};

}  // namespace
}  // namespace sherd
