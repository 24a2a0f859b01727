// Vectors of 64 bytes for kernels, the same width at every instruction set, so lanes, tails and the
// order of sums are the same everywhere. Where registers are narrower a vector is two halves, and
// those two halves, down to a register's width: left to split a wider vector itself, GCC keeps what
// a loop carries in memory, and compares and selects lane by lane. Only NAME_cpu.cc files include
// this. Everything here is inlined or in an unnamed namespace: code compiled for one instruction
// set must never be merged by the linker into another's.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd {
namespace {

/// By the compiler's own macros, as tests include this without SHERD_ISA.
#if defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif

/// A vector wider than a register. A lane is read by [], and written through memory.
template <class V>
struct Halves {
  V low, high;
  [[gnu::always_inline]] auto operator[](int i) const {
    constexpr int kHalf = sizeof(V) / sizeof(low[0]);
    return i < kHalf ? low[i] : high[i - kHalf];
  }
};
template <class V>
inline constexpr bool kIsHalves = false;
template <class V>
inline constexpr bool kIsHalves<Halves<V>> = true;
template <class V>
using Half = decltype(V::low);

/// `lanes` of E, in registers' worths of part_lanes.
template <class E, int lanes, int part_lanes>
struct LanesOf {
  using type = Halves<typename LanesOf<E, lanes / 2, part_lanes>::type>;
};
template <class E, int lanes, int part_lanes>
requires(lanes <= part_lanes) struct LanesOf<E, lanes, part_lanes> {
  typedef E type __attribute__((vector_size(sizeof(E) * lanes)));  // GCC ignores it in a `using`
};
/// 16 lanes, cut as F32x16 is; 8 lanes, cut as F64x8 is.
template <class E>
using By16 = typename LanesOf<E, 16, kRegisterBytes / 4>::type;
template <class E>
using By8 = typename LanesOf<E, 8, kRegisterBytes / 8>::type;

using F32x16 = By16<float>;
using I32x16 = By16<int32_t>;
using U32x16 = By16<uint32_t>;
using U16x16 = By16<uint16_t>;
using F64x8 = By8<double>;
using I64x8 = By8<int64_t>;
using U64x8 = By8<uint64_t>;

template <class V>
using ElementOf = std::remove_cvref_t<decltype(std::declval<const V&>()[0])>;
template <class V>
inline constexpr int kCount = sizeof(V) / sizeof(ElementOf<V>);

template <class X>
[[gnu::always_inline]] inline auto low_of(X x) {
  if constexpr (kIsHalves<X>)
    return x.low;
  else
    return x;
}
template <class X>
[[gnu::always_inline]] inline auto high_of(X x) {
  if constexpr (kIsHalves<X>)
    return x.high;
  else
    return x;
}
/// op of each register's worth of the vectors; a scalar among them goes to all. Comparisons and ?:
/// need it, which Halves cannot have.
template <class Op, class... Xs>
[[gnu::always_inline]] inline auto by_register(const Op& op, Xs... x) {
  if constexpr ((kIsHalves<Xs> || ...)) {
    const auto low = by_register(op, low_of(x)...);
    return Halves<std::remove_cv_t<decltype(low)>>{low, by_register(op, high_of(x)...)};
  } else {
    return op(x...);
  }
}

/// Operands of the operators below: at least one Halves, at most one scalar, which becomes a lane.
template <class A, class B>
concept AnyHalves = kIsHalves<A> || kIsHalves<B>;
template <class Other, class X>
[[gnu::always_inline]] inline auto as_operand(X x) {
  if constexpr (std::is_arithmetic_v<X>)
    return static_cast<ElementOf<Other>>(x);
  else
    return x;
}
template <class Op, class A, class B>
[[gnu::always_inline]] inline auto operate(const Op& op, A a, B b) {
  return by_register(op, as_operand<B>(a), as_operand<A>(b));
}
template <class A, class B>
requires AnyHalves<A, B>
[[gnu::always_inline]] inline auto operator+(A a, B b) {
  return operate(
      [](auto x, auto y) __attribute__((always_inline)) { return x + y; }, a, b);
}
template <class A, class B>
requires AnyHalves<A, B>
[[gnu::always_inline]] inline auto operator-(A a, B b) {
  return operate(
      [](auto x, auto y) __attribute__((always_inline)) { return x - y; }, a, b);
}
template <class A, class B>
requires AnyHalves<A, B>
[[gnu::always_inline]] inline auto operator*(A a, B b) {
  return operate(
      [](auto x, auto y) __attribute__((always_inline)) { return x * y; }, a, b);
}
template <class A, class B>
requires AnyHalves<A, B>
[[gnu::always_inline]] inline auto operator/(A a, B b) {
  return operate(
      [](auto x, auto y) __attribute__((always_inline)) { return x / y; }, a, b);
}
template <class A, class B>
requires AnyHalves<A, B>
[[gnu::always_inline]] inline auto operator&(A a, B b) {
  return operate(
      [](auto x, auto y) __attribute__((always_inline)) { return x & y; }, a, b);
}
template <class A, class B>
requires AnyHalves<A, B>
[[gnu::always_inline]] inline auto operator|(A a, B b) {
  return operate(
      [](auto x, auto y) __attribute__((always_inline)) { return x | y; }, a, b);
}
template <class A, class B>
requires AnyHalves<A, B>
[[gnu::always_inline]] inline auto operator^(A a, B b) {
  return operate(
      [](auto x, auto y) __attribute__((always_inline)) { return x ^ y; }, a, b);
}
template <class V>
[[gnu::always_inline]] inline Halves<V> operator<<(Halves<V> a, int bits) {
  return {a.low << bits, a.high << bits};
}
template <class V>
[[gnu::always_inline]] inline Halves<V> operator>>(Halves<V> a, int bits) {
  return {a.low >> bits, a.high >> bits};
}
template <class V>
[[gnu::always_inline]] inline Halves<V> operator-(Halves<V> a) {
  return {-a.low, -a.high};
}
template <class V, class B>
[[gnu::always_inline]] inline Halves<V>& operator+=(Halves<V>& a, B b) {
  return a = a + b;
}
template <class V, class B>
[[gnu::always_inline]] inline Halves<V>& operator*=(Halves<V>& a, B b) {
  return a = a * b;
}

/// a < b ? x : y in each lane; y where a or b is NaN.
template <class V, class X>
[[gnu::always_inline]] inline X select_less(V a, V b, X x, X y) {
  return by_register(
      [](auto a, auto b, auto x, auto y) __attribute__((always_inline)) { return a < b ? x : y; },
      a, b, x, y);
}
/// a == b ? x : y in each lane.
template <class V, class X>
[[gnu::always_inline]] inline X select_equal(V a, V b, X x, X y) {
  return by_register(
      [](auto a, auto b, auto x, auto y) __attribute__((always_inline)) { return a == b ? x : y; },
      a, b, x, y);
}

/// Lanes converted to those of To.
template <class To, class From>
[[gnu::always_inline]] inline To convert(From x) {
  if constexpr (kIsHalves<To>)
    return {convert<Half<To>>(x.low), convert<Half<To>>(x.high)};
  else
    return __builtin_convertvector(x, To);
}
/// The same bits as lanes of To.
template <class To, class From>
[[gnu::always_inline]] inline To bits_as(From x) {
  if constexpr (kIsHalves<To>)
    return {bits_as<Half<To>>(x.low), bits_as<Half<To>>(x.high)};
  else
    return __builtin_bit_cast(To, x);
}

/// V's lanes from where E's bits are, and there.
template <class V, class E>
[[gnu::always_inline]] inline V load_bits(const E* p) {
  static_assert(sizeof(E) == sizeof(ElementOf<V>));
  if constexpr (kIsHalves<V>) {
    return {load_bits<Half<V>>(p), load_bits<Half<V>>(p + kCount<V> / 2)};
  } else {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
}
template <class V, class E>
[[gnu::always_inline]] inline void store_bits(E* p, V v) {
  static_assert(sizeof(E) == sizeof(ElementOf<V>));
  if constexpr (kIsHalves<V>) {
    store_bits(p, v.low);
    store_bits(p + kCount<V> / 2, v.high);
  } else {
    std::memcpy(static_cast<void*>(p), &v, sizeof v);
  }
}

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

[[gnu::always_inline]] inline F32x16 load(const float* p) { return load_bits<F32x16>(p); }
[[gnu::always_inline]] inline F64x8 load(const double* p) { return load_bits<F64x8>(p); }
[[gnu::always_inline]] inline F32x16 load(const bf16* p) {
  return bits_as<F32x16>(convert<U32x16>(load_bits<U16x16>(p)) << 16);
}
[[gnu::always_inline]] inline F32x16 load(const f16* p) {
#if defined(__F16C__)
  return by_register(
      [](auto x) __attribute__((always_inline)) {
#if defined(__AVX512F__)
        return __builtin_bit_cast(F32x16, _mm512_cvtph_ps(__builtin_bit_cast(__m256i, x)));
#else
        return __builtin_bit_cast(Half<F32x16>, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, x)));
#endif
      },
      load_bits<U16x16>(p));
#else
  float x[16];
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(p[i]);
  return load(x);
#endif
}

[[gnu::always_inline]] inline void store(float* p, F32x16 v) { store_bits(p, v); }
[[gnu::always_inline]] inline void store(double* p, F64x8 v) { store_bits(p, v); }
[[gnu::always_inline]] inline void store(bf16* p, F32x16 v) {
  const U32x16 u = bits_as<U32x16>(v);
  const U32x16 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const U32x16 quiet = (u >> 16) | 0x40u;  // NaN
  store_bits(p, convert<U16x16>(select_equal(v, v, rounded, quiet)));
}
[[gnu::always_inline]] inline void store(f16* p, F32x16 v) {
#if defined(__F16C__)
  constexpr int kNearestEven = 0;
  store_bits(p, by_register(
                    [](auto x) __attribute__((always_inline)) {
#if defined(__AVX512F__)
                      return __builtin_bit_cast(
                          U16x16, _mm512_cvtps_ph(__builtin_bit_cast(__m512, x), kNearestEven));
#else
                      return __builtin_bit_cast(
                          Half<U16x16>,
                          _mm256_cvtps_ph(__builtin_bit_cast(__m256, x), kNearestEven));
#endif
                    },
                    v));
#else
  float x[16];
  store(x, v);
  for (int i = 0; i < 16; ++i) p[i] = f16(x[i]);
#endif
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
template <class V, class Combine>
[[gnu::always_inline]] inline ElementOf<V> fold(V v, const Combine& combine) {
  if constexpr (kIsHalves<V>) {
    return fold(combine(v.low, v.high), combine);
  } else if constexpr (kCount<V> == 16) {
    return fold(combine(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                        __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)),
                combine);
  } else if constexpr (kCount<V> == 8) {
    return fold(combine(__builtin_shufflevector(v, v, 0, 1, 2, 3),
                        __builtin_shufflevector(v, v, 4, 5, 6, 7)),
                combine);
  } else if constexpr (kCount<V> == 4 && sizeof(V) == 32) {
    return fold(combine(__builtin_shufflevector(v, v, 0, 1), __builtin_shufflevector(v, v, 2, 3)),
                combine);
  } else if constexpr (kCount<V> == 4) {
    const V pair = combine(v, __builtin_shufflevector(v, v, 2, 3, 2, 3));
    return combine(pair[0], pair[1]);
  } else {
    return combine(v[0], v[1]);
  }
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
