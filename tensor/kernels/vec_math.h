// exp, log, tanh, erf, sqrt, abs and max of vectors, for kernels. Like vec.h only NAME_cpu.cc files
// include this, and everything in it is inlined. Results are the same at every instruction set but
// for the rounding of fused multiply-adds.
#pragma once

#include <immintrin.h>

#include "tensor/kernels/vec.h"

namespace sherd {
namespace {

// Bits are added and subtracted unsigned: lanes whose result is not taken may overflow.

/// x where x is NaN, else y.
template <class V>
[[gnu::always_inline]] inline V keep_nan(V x, V y) {
  return select_equal(x, x, y, x);
}

template <class V>
[[gnu::always_inline]] inline V max(V a, V b) {
  return select_less(b, a, a, b);
}
/// Largest lane.
template <class V>
[[gnu::always_inline]] inline ElementOf<V> max(V v) {
  return fold(
      v, [](auto a, auto b) __attribute__((always_inline)) { return max(a, b); });
}

/// y where x <= most, beyond that infinity, and NaN for NaN.
template <class V>
[[gnu::always_inline]] inline V up_to(ElementOf<V> most, V x, V y) {
  return by_register(
      [most](auto x, auto y) __attribute__((always_inline)) {
        return x <= most ? y : x * static_cast<ElementOf<V>>(__builtin_inf());
      },
      x, y);
}

/// Where e^x is a normal number: from ln of the smallest to ln of the largest.
template <class E>
constexpr E kExpLow = static_cast<E>(sizeof(E) == 4 ? -87.3365 : -708.396);
template <class E>
constexpr E kExpHigh = static_cast<E>(sizeof(E) == 4 ? 88.72283 : 709.782712893384);

/// x moved into [low, high]; NaN stays.
template <class V>
[[gnu::always_inline]] inline V clamp(V x, ElementOf<V> low, ElementOf<V> high) {
  const V c = select_less(splat(high), x, splat(high), x);
  return select_less(c, splat(low), splat(low), c);
}

/// e^x within 1 ulp, for x in [kExpLow, kExpHigh]; anything for NaN.
/// x = n ln 2 + r, |r| <= ln 2 / 2; the polynomial is that of Cephes' expf.
[[gnu::always_inline]] inline F32x16 exp_in_range(F32x16 x) {
  constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: adding it leaves n in the low bits
  const F32x16 shifted = x * 1.44269504f + kRound;
  const F32x16 n = shifted - kRound;
  const F32x16 r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  F32x16 p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  return bits_as<F32x16>(bits_as<U32x16>(p) + (bits_as<U32x16>(shifted) << 23));
}

/// The same for f64; the polynomial is the Taylor series.
[[gnu::always_inline]] inline F64x8 exp_in_range(F64x8 x) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 · 2^52
  const F64x8 shifted = x * 1.4426950408889634 + kRound;
  const F64x8 n = shifted - kRound;
  const F64x8 r = (x - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
  F64x8 p = splat(1.0 / 6227020800.0);
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  return bits_as<F64x8>(bits_as<U64x8>(p) + (bits_as<U64x8>(shifted) << 52));
}

/// e^x; infinity above the range, NaN for NaN. Results below the normal range are 0: subnormal ones
/// would cost a hundred cycles each, and masked scores are all there.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  using E = ElementOf<V>;
  const V y = exp_in_range(clamp(x, kExpLow<E>, kExpHigh<E>));
  return up_to(kExpHigh<E>, x, select_less(x, splat(kExpLow<E>), V{}, y));
}

/// ln x within 2 ulp; -infinity for 0 and subnormal x, NaN below.
/// x = 2^n m, m in [√½, √2); s = (m - 1) / (m + 1); ln m = 2 (s + s³/3 + s⁵/5 + …).
[[gnu::always_inline]] inline F64x8 log(F64x8 x) {
  const U64x8 bits = bits_as<U64x8>(x);
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const I64x8 n = bits_as<I64x8>(bits - kRootHalf) >> 52;
  const F64x8 m = bits_as<F64x8>(bits - (bits_as<U64x8>(n) << 52));
  const F64x8 s = (m - 1.0) / (m + 1.0);
  const F64x8 s2 = s * s;
  F64x8 p = splat(1.0 / 23);
  p = p * s2 + 1.0 / 21;
  p = p * s2 + 1.0 / 19;
  p = p * s2 + 1.0 / 17;
  p = p * s2 + 1.0 / 15;
  p = p * s2 + 1.0 / 13;
  p = p * s2 + 1.0 / 11;
  p = p * s2 + 1.0 / 9;
  p = p * s2 + 1.0 / 7;
  p = p * s2 + 1.0 / 5;
  p = p * s2 + 1.0 / 3;
  const F64x8 ln_m = s * 2.0 + (s * 2.0) * (s2 * p);
  const F64x8 nd = convert<F64x8>(n);
  F64x8 y = nd * 6.93147180369123816490e-1 + (ln_m + nd * 1.90821492927058770002e-10);
  y = select_less(x, splat(0x1p-1022), splat(-__builtin_inf()), y);
  y = select_less(splat(__DBL_MAX__), x, x, y);
  y = select_less(x, F64x8{}, splat(__builtin_nan("")), y);
  return keep_nan(x, y);
}

/// The same for f32.
[[gnu::always_inline]] inline F32x16 log(F32x16 x) {
  const U32x16 bits = bits_as<U32x16>(x);
  constexpr uint32_t kRootHalf = 0x3f3504f3;
  const I32x16 n = bits_as<I32x16>(bits - kRootHalf) >> 23;
  const F32x16 m = bits_as<F32x16>(bits - (bits_as<U32x16>(n) << 23));
  const F32x16 s = (m - 1.0f) / (m + 1.0f);
  const F32x16 s2 = s * s;
  F32x16 p = splat(1.0f / 11);
  p = p * s2 + 1.0f / 9;
  p = p * s2 + 1.0f / 7;
  p = p * s2 + 1.0f / 5;
  p = p * s2 + 1.0f / 3;
  const F32x16 ln_m = s * 2.0f + (s * 2.0f) * (s2 * p);
  const F32x16 nf = convert<F32x16>(n);
  F32x16 y = nf * 0.693359375f + (ln_m + nf * -2.12194440e-4f);
  y = select_less(x, splat(0x1p-126f), splat(-__builtin_inff()), y);
  y = select_less(splat(__FLT_MAX__), x, x, y);
  y = select_less(x, F32x16{}, splat(__builtin_nanf("")), y);
  return keep_nan(x, y);
}

[[gnu::always_inline]] inline F32x16 abs(F32x16 x) {
  return bits_as<F32x16>(bits_as<U32x16>(x) & 0x7fffffffu);
}
[[gnu::always_inline]] inline F64x8 abs(F64x8 x) {
  return bits_as<F64x8>(bits_as<I64x8>(x) & 0x7fffffffffffffff);
}

/// |magnitude| with the sign of `sign`.
[[gnu::always_inline]] inline F32x16 copysign(F32x16 magnitude, F32x16 sign) {
  const U32x16 m = bits_as<U32x16>(magnitude) & 0x7fffffffu;
  return bits_as<F32x16>(m | (bits_as<U32x16>(sign) & 0x80000000u));
}

/// 1 / x for x in [1, 2], within 0.52 ulp; faster than dividing where there are 512-bit registers.
[[gnu::always_inline]] inline F32x16 reciprocal(F32x16 x) {
#if defined(__AVX512F__)
  const auto r = bits_as<F32x16>(_mm512_rcp14_ps(__builtin_bit_cast(__m512, x)));
  return r + r * (1.0f - x * r);  // Newton
#else
  return 1.0f / x;
#endif
}
[[gnu::always_inline]] inline F64x8 reciprocal(F64x8 x) { return 1.0 / x; }

/// √x of each lane, correctly rounded.
template <class V>
[[gnu::always_inline]] inline V sqrt(V v) {
  return by_register(
      [](auto x) __attribute__((always_inline)) {
        constexpr bool kSingle = sizeof(x[0]) == 4;
        const auto as = [](auto root) __attribute__((always_inline)) {
          return __builtin_bit_cast(decltype(x), root);
        };
#if defined(__AVX512F__)
        if constexpr (kSingle)
          return as(_mm512_sqrt_ps(__builtin_bit_cast(__m512, x)));
        else
          return as(_mm512_sqrt_pd(__builtin_bit_cast(__m512d, x)));
#elif defined(__AVX2__)
        if constexpr (kSingle)
          return as(_mm256_sqrt_ps(__builtin_bit_cast(__m256, x)));
        else
          return as(_mm256_sqrt_pd(__builtin_bit_cast(__m256d, x)));
#else
        if constexpr (kSingle)
          return as(_mm_sqrt_ps(__builtin_bit_cast(__m128, x)));
        else
          return as(_mm_sqrt_pd(__builtin_bit_cast(__m128d, x)));
#endif
      },
      v);
}

/// f(x) of each lane, by a function of the C library: for checks, not for speed.
template <class F>
[[gnu::always_inline]] inline F64x8 by_lane(F64x8 v, const F& f) {
  double x[8];
  store(x, v);
  for (double& lane : x) lane = f(lane);
  return load(x);
}

/// tanh x within 1.1 ulp. Below 0.625 the polynomial of Cephes' tanhf.
[[gnu::always_inline]] inline F32x16 tanh(F32x16 x) {
  const F32x16 a = abs(x);
  const F32x16 x2 = x * x;
  F32x16 p = x2 * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * x2 - 5.37397155531e-2f;
  p = p * x2 + 1.33314422036e-1f;
  p = p * x2 - 3.33332819422e-1f;
  const F32x16 small = p * x2 * x + x;
  const F32x16 large = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  return copysign(select_less(a, splat(0.625f), small, large), x);
}

/// e^(x²) erfc(x) for x >= 0, within 2 ulp up to 10: t = 1 / (1 + 0.3 x) times a polynomial in t
/// that interpolates at Chebyshev's points.
[[gnu::always_inline]] inline F32x16 scaled_erfc(F32x16 x) {
  const F32x16 t = 1.0f / (x * 0.3f + 1.0f);
  const F32x16 u = t - 0.5f;
  F32x16 p = u * -1.307708773e-1f - 3.114923851e-2f;
  p = p * u + 2.802221432e-1f;
  p = p * u + 6.533180332e-1f;
  p = p * u + 9.113233529e-1f;
  p = p * u + 9.497360741e-1f;
  p = p * u + 7.951249572e-1f;
  p = p * u + 5.530472326e-1f;
  p = p * u + 3.249799222e-1f;
  return p * t;
}

/// erf x within 1.2 ulp. Below 1 the polynomial of Cephes' erff.
[[gnu::always_inline]] inline F32x16 erf(F32x16 x) {
  const F32x16 a = abs(x);
  const F32x16 x2 = x * x;
  F32x16 p = x2 * 7.853861353153693e-5f - 8.010193625184903e-4f;
  p = p * x2 + 5.188327685732524e-3f;
  p = p * x2 - 2.685381193529856e-2f;
  p = p * x2 + 1.128358514861418e-1f;
  p = p * x2 - 3.761262582423300e-1f;
  const F32x16 small = x + x * (p * x2 + 1.28379165726710e-1f);
  const F32x16 large = 1.0f - exp(-x2) * scaled_erfc(a);
  return select_less(a, splat(1.0f), small, copysign(large, x));
}

[[gnu::always_inline]] inline F64x8 tanh(F64x8 x) {
  return by_lane(x, [](double lane) { return __builtin_tanh(lane); });
}
[[gnu::always_inline]] inline F64x8 erf(F64x8 x) {
  return by_lane(x, [](double lane) { return __builtin_erf(lane); });
}

/// Φ(x) = P(normal <= x) and its derivative, the normal density φ(x). Φ keeps its digits in the
/// left tail (60 ulp at -12).
[[gnu::always_inline]] inline void normal_cdf(F32x16 x, F32x16& cdf, F32x16& density) {
  const F32x16 a = abs(x) * 0.70710678f;
  const F32x16 e = exp(x * x * -0.5f);
  const F32x16 tail = e * scaled_erfc(a) * 0.5f;
  cdf = select_less(x, F32x16{}, tail, 1.0f - tail);
  density = e * 0.39894228f;
}
[[gnu::always_inline]] inline void normal_cdf(F64x8 x, F64x8& cdf, F64x8& density) {
  cdf = by_lane(x, [](double lane) { return 0.5 * __builtin_erfc(lane * -0.7071067811865476); });
  density = exp(x * x * -0.5) * 0.3989422804014327;
}

}  // namespace
}  // namespace sherd
