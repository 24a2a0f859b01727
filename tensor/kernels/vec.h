// Vectors of 64 bytes for kernels, the same width at every instruction set (the compiler splits
// them where registers are narrower), so lanes, tails and the order of sums are the same
// everywhere. Only NAME_cpu.cc files include this. Everything here is inlined or in an unnamed
// namespace: code compiled for one instruction set must never be merged by the linker into
// another's.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd {
namespace {

using F32x16 = float __attribute__((vector_size(64)));
using I32x16 = int32_t __attribute__((vector_size(64)));
using U32x16 = uint32_t __attribute__((vector_size(64)));
using U16x16 = uint16_t __attribute__((vector_size(32)));
using F64x8 = double __attribute__((vector_size(64)));
using I64x8 = int64_t __attribute__((vector_size(64)));

/// The vector that elements of storage type T are computed in: F64x8 for double, else F32x16.
template <class T>
struct VecOf {
  using type = F32x16;
  static constexpr int lanes = 16;
};
template <>
struct VecOf<double> {
  using type = F64x8;
  static constexpr int lanes = 8;
};
template <class T>
using Vec = typename VecOf<T>::type;
template <class T>
inline constexpr int kLanes = VecOf<T>::lanes;

[[gnu::always_inline]] inline F32x16 splat(float x) { return x - F32x16{}; }
[[gnu::always_inline]] inline F64x8 splat(double x) { return x - F64x8{}; }

[[gnu::always_inline]] inline F32x16 load(const float* p) {
  F32x16 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline F64x8 load(const double* p) {
  F64x8 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline F32x16 load(const bf16* p) {
  U16x16 h;
  std::memcpy(&h, p, sizeof h);
  const U32x16 u = __builtin_convertvector(h, U32x16) << 16;
  return __builtin_bit_cast(F32x16, u);
}
[[gnu::always_inline]] inline F32x16 load(const f16* p) {
  float x[16];
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(p[i]);
  return load(x);
}

[[gnu::always_inline]] inline void store(float* p, F32x16 v) { std::memcpy(p, &v, sizeof v); }
[[gnu::always_inline]] inline void store(double* p, F64x8 v) { std::memcpy(p, &v, sizeof v); }
[[gnu::always_inline]] inline void store(bf16* p, F32x16 v) {
  const U32x16 u = __builtin_bit_cast(U32x16, v);
  const U32x16 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const I32x16 nan = v != v;
  const U32x16 mask = __builtin_bit_cast(U32x16, nan);
  const U32x16 bits = (rounded & ~mask) | (((u >> 16) | 0x40u) & mask);
  const U16x16 h = __builtin_convertvector(bits, U16x16);
  std::memcpy(static_cast<void*>(p), &h, sizeof h);
}
[[gnu::always_inline]] inline void store(f16* p, F32x16 v) {
  for (int i = 0; i < 16; ++i) p[i] = f16(v[i]);
}

/// The first n < lanes elements, zeros behind them: a tail goes through the same operations as a
/// full vector.
template <class T>
[[gnu::always_inline]] inline Vec<T> load_n(const T* p, int64_t n) {
  T x[kLanes<T>] = {};
  for (int64_t i = 0; i < n; ++i) x[i] = p[i];
  return load(x);
}
template <class T>
[[gnu::always_inline]] inline void store_n(T* p, Vec<T> v, int64_t n) {
  T x[kLanes<T>];
  store(x, v);
  for (int64_t i = 0; i < n; ++i) p[i] = x[i];
}

/// The lanes [0, n/2) combined with the lanes [n/2, n), and so on down to one: a fixed tree that
/// stays in registers.
template <class Combine>
[[gnu::always_inline]] inline float fold(F32x16 v, const Combine& combine) {
  using F32x8 = float __attribute__((vector_size(32)));
  using F32x4 = float __attribute__((vector_size(16)));
  const F32x8 h = combine(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                          __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  const F32x4 q =
      combine(__builtin_shufflevector(h, h, 0, 1, 2, 3), __builtin_shufflevector(h, h, 4, 5, 6, 7));
  const F32x4 d = combine(q, __builtin_shufflevector(q, q, 2, 3, 2, 3));
  return combine(d[0], d[1]);
}
template <class Combine>
[[gnu::always_inline]] inline double fold(F64x8 v, const Combine& combine) {
  using F64x4 = double __attribute__((vector_size(32)));
  using F64x2 = double __attribute__((vector_size(16)));
  const F64x4 h =
      combine(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7));
  const F64x2 q = combine(__builtin_shufflevector(h, h, 0, 1), __builtin_shufflevector(h, h, 2, 3));
  return combine(q[0], q[1]);
}

/// Sum of the lanes in a fixed tree.
[[gnu::always_inline]] inline float sum(F32x16 v) {
  return fold(v, [](auto a, auto b) { return a + b; });
}
[[gnu::always_inline]] inline double sum(F64x8 v) {
  return fold(v, [](auto a, auto b) { return a + b; });
}

/// Calls body(offset, count) for each vector of T in [0, n): count is lanes, but for the tail.
template <class T, class Body>
[[gnu::always_inline]] inline void for_lanes(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) body(i, kLanes<T>);
  if (i < n) body(i, n - i);
}
/// load and store that take for_lanes' count.
template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p, int64_t count) {
  return count == kLanes<T> ? load(p) : load_n(p, count);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Vec<T> v, int64_t count) {
  if (count == kLanes<T>)
    store(p, v);
  else
    store_n(p, v, count);
}

}  // namespace
}  // namespace sherd
