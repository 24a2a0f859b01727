// Sums and maxima over a row for kernels, in an order that its length alone decides. Like vec.h
// only NAME_cpu.cc files include this, and everything in it is inlined.
#pragma once

#include "tensor/kernels/vec_math.h"

namespace sherd {
namespace {

/// The value that changes no maximum.
template <class A>
inline constexpr A kLowest = -static_cast<A>(__builtin_inf());

/// Lanes from `count` on become `other`.
template <class V, class A>
[[gnu::always_inline]] inline V first_lanes(V v, int64_t count, A other) {
  A x[kCount<V>];
  store(x, v);
  for (int64_t i = count; i < kCount<V>; ++i) x[i] = other;
  return load(x);
}

/// Σ term(i, count) over the lanes of a row of n elements of T, where term gives the vector at
/// offset i; its lanes from `count` on are left out. Four sums at once, so that one addition need
/// not wait for the one before it.
template <class T, class Term>
[[gnu::always_inline]] inline Accumulate<T> sum_of(int64_t n, const Term& term) {
  constexpr int64_t kStep = kLanes<T>;
  Vec<T> s0 = {}, s1 = {}, s2 = {}, s3 = {};
  int64_t i = 0;
  for (; i + 4 * kStep <= n; i += 4 * kStep) {
    s0 += term(i, kStep);
    s1 += term(i + kStep, kStep);
    s2 += term(i + 2 * kStep, kStep);
    s3 += term(i + 3 * kStep, kStep);
  }
  for (; i + kStep <= n; i += kStep) s0 += term(i, kStep);
  if (i < n) s1 += first_lanes(term(i, n - i), n - i, Accumulate<T>{0});
  return sum((s0 + s1) + (s2 + s3));
}

/// Largest of x[0, n); -infinity when n is 0.
template <class T>
[[gnu::always_inline]] inline Accumulate<T> max_of(const T* x, int64_t n) {
  constexpr int64_t kStep = kLanes<T>;
  Vec<T> m0 = splat(kLowest<Accumulate<T>>), m1 = m0, m2 = m0, m3 = m0;
  int64_t i = 0;
  for (; i + 4 * kStep <= n; i += 4 * kStep) {
    m0 = max(m0, load(x + i));
    m1 = max(m1, load(x + i + kStep));
    m2 = max(m2, load(x + i + 2 * kStep));
    m3 = max(m3, load(x + i + 3 * kStep));
  }
  for (; i + kStep <= n; i += kStep) m0 = max(m0, load(x + i));
  if (i < n) m1 = max(m1, first_lanes(load_n(x + i, n - i), n - i, kLowest<Accumulate<T>>));
  return max(max(max(m0, m1), max(m2, m3)));
}

/// max(x) and Σ exp(x - max(x)): what softmax and its logarithm need of a row.
template <class A>
struct MaxAndSum {
  A max;
  A sum;
};

/// One pass over memory: each 1,024 elements are read once for its maximum, and again, from the
/// cache, for its sum. A row of -infinity alone, or with a NaN, has the sum NaN.
template <class T>
[[gnu::always_inline]] inline MaxAndSum<Accumulate<T>> max_and_sum(const T* x, int64_t n) {
  using A = Accumulate<T>;
  constexpr int64_t kBlock = 1024;
  A m = kLowest<A>;
  double s = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const T* p = x + begin;
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    const A block_max = max_of(p, count);
    if (block_max > m) {
      s *= static_cast<double>(exp(splat(m - block_max))[0]);
      m = block_max;
    }
    if (m == kLowest<A> && begin + count < n) continue;  // masked: -inf - -inf is no number
    s += static_cast<double>(
        sum_of<T>(count, [&](int64_t i, int64_t k) { return exp(load(p + i, k) - splat(m)); }));
  }
  return {m, static_cast<A>(s)};
}

}  // namespace
}  // namespace sherd
