// exp, log and max of vectors, for kernels. Like vec.h only NAME_cpu.cc files include this, and
// everything in it is inlined. Results are the same at every instruction set but for the rounding
// of fused multiply-adds.
#pragma once

#include "tensor/kernels/vec.h"

namespace sherd {
namespace {

[[gnu::always_inline]] inline F32x16 max(F32x16 a, F32x16 b) { return a > b ? a : b; }
[[gnu::always_inline]] inline F64x8 max(F64x8 a, F64x8 b) { return a > b ? a : b; }

/// Largest lane.
[[gnu::always_inline]] inline float max(F32x16 v) {
  float x[16];
  store(x, v);
  for (int w = 8; w > 0; w /= 2)
    for (int i = 0; i < w; ++i) x[i] = x[i] > x[i + w] ? x[i] : x[i + w];
  return x[0];
}
[[gnu::always_inline]] inline double max(F64x8 v) {
  double x[8];
  store(x, v);
  for (int w = 4; w > 0; w /= 2)
    for (int i = 0; i < w; ++i) x[i] = x[i] > x[i + w] ? x[i] : x[i + w];
  return x[0];
}

/// e^x within 2 ulp; infinity above the range, NaN for NaN. Results below the normal range are 0:
/// subnormal ones would cost a hundred cycles each, and masked scores are all there.
/// x = n ln 2 + r, |r| <= ln 2 / 2; the polynomial is that of Cephes' expf.
[[gnu::always_inline]] inline F32x16 exp(F32x16 x) {
  constexpr float kLow = -87.3365f;      // ln 2^-126
  constexpr float kHigh = 88.72283f;     // ln of the largest float
  constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: adding it leaves n in the low bits
  F32x16 c = x < splat(kLow) ? splat(kLow) : x;
  c = c > splat(kHigh) ? splat(kHigh) : c;
  const F32x16 shifted = c * 1.44269504f + kRound;
  const F32x16 n = shifted - kRound;
  const F32x16 r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
  F32x16 p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const I32x16 scaled = __builtin_bit_cast(I32x16, p) + (__builtin_bit_cast(I32x16, shifted) << 23);
  F32x16 y = __builtin_bit_cast(F32x16, scaled);
  y = x < splat(kLow) ? F32x16{} : y;
  y = x > splat(kHigh) ? splat(__builtin_inff()) : y;
  return x != x ? x : y;
}

/// The same for f64; the polynomial is the Taylor series.
[[gnu::always_inline]] inline F64x8 exp(F64x8 x) {
  constexpr double kLow = -708.396;
  constexpr double kHigh = 709.782712893384;
  constexpr double kRound = 6755399441055744.0;  // 1.5 · 2^52
  F64x8 c = x < splat(kLow) ? splat(kLow) : x;
  c = c > splat(kHigh) ? splat(kHigh) : c;
  const F64x8 shifted = c * 1.4426950408889634 + kRound;
  const F64x8 n = shifted - kRound;
  const F64x8 r = (c - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
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
  const I64x8 scaled = __builtin_bit_cast(I64x8, p) + (__builtin_bit_cast(I64x8, shifted) << 52);
  F64x8 y = __builtin_bit_cast(F64x8, scaled);
  y = x < splat(kLow) ? F64x8{} : y;
  y = x > splat(kHigh) ? splat(__builtin_inf()) : y;
  return x != x ? x : y;
}

/// ln x within 2 ulp; -infinity for 0 and subnormal x, NaN below.
/// x = 2^n m, m in [√½, √2); s = (m - 1) / (m + 1); ln m = 2 (s + s³/3 + s⁵/5 + …).
[[gnu::always_inline]] inline F64x8 log(F64x8 x) {
  const I64x8 bits = __builtin_bit_cast(I64x8, x);
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const I64x8 n = (bits - kRootHalf) >> 52;
  const F64x8 m = __builtin_bit_cast(F64x8, bits - (n << 52));
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
  const F64x8 nd = __builtin_convertvector(n, F64x8);
  F64x8 y = nd * 6.93147180369123816490e-1 + (ln_m + nd * 1.90821492927058770002e-10);
  y = x < splat(0x1p-1022) ? splat(-__builtin_inf()) : y;
  y = x == splat(__builtin_inf()) ? x : y;
  return x < F64x8{} || x != x ? splat(__builtin_nan("")) : y;
}

/// The same for f32.
[[gnu::always_inline]] inline F32x16 log(F32x16 x) {
  const I32x16 bits = __builtin_bit_cast(I32x16, x);
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const I32x16 n = (bits - kRootHalf) >> 23;
  const F32x16 m = __builtin_bit_cast(F32x16, bits - (n << 23));
  const F32x16 s = (m - 1.0f) / (m + 1.0f);
  const F32x16 s2 = s * s;
  F32x16 p = splat(1.0f / 11);
  p = p * s2 + 1.0f / 9;
  p = p * s2 + 1.0f / 7;
  p = p * s2 + 1.0f / 5;
  p = p * s2 + 1.0f / 3;
  const F32x16 ln_m = s * 2.0f + (s * 2.0f) * (s2 * p);
  const F32x16 nf = __builtin_convertvector(n, F32x16);
  F32x16 y = nf * 0.693359375f + (ln_m + nf * -2.12194440e-4f);
  y = x < splat(0x1p-126f) ? splat(-__builtin_inff()) : y;
  y = x == splat(__builtin_inff()) ? x : y;
  return x < F32x16{} || x != x ? splat(__builtin_nanf("")) : y;
}

}  // namespace
}  // namespace sherd
