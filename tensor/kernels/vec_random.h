// Philox for kernels: the words of tensor/random.h, eight blocks at once. Like vec.h only
// NAME_cpu.cc files include this, and everything in it is inlined.
#pragma once

#include "tensor/kernels/vec.h"

namespace sherd {
namespace {

using U32x8 = By8<uint32_t>;

constexpr uint64_t kUpTo7[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/// high and low words of a · b.
[[gnu::always_inline]] inline void multiply(U32x8 a, uint32_t b, U32x8& high, U32x8& low) {
  const U64x8 product = by_register(
      [b](auto wide) __attribute__((always_inline)) {
        // Left to itself, GCC multiplies all 64 bits.
        const auto as = [](auto x) __attribute__((always_inline)) {
          return __builtin_bit_cast(decltype(wide), x);
        };
#if defined(__AVX512F__)
        return as(_mm512_mul_epu32(__builtin_bit_cast(__m512i, wide), _mm512_set1_epi64(b)));
#elif defined(__AVX2__)
        return as(_mm256_mul_epu32(__builtin_bit_cast(__m256i, wide), _mm256_set1_epi64x(b)));
#else
        return as(_mm_mul_epu32(__builtin_bit_cast(__m128i, wide), _mm_set1_epi64x(b)));
#endif
      },
      convert<U64x8>(a));
  high = convert<U32x8>(product >> 32);
  low = convert<U32x8>(product);
}

/// Lane j of c[k] is word k of block first + j.
struct PhiloxBlocks {
  U32x8 c[4];
};
[[gnu::always_inline]] inline PhiloxBlocks philox_blocks(uint64_t first, uint64_t seed,
                                                         uint64_t stream) {
  const U64x8 blocks = load_bits<U64x8>(kUpTo7) + first;
  U32x8 c0 = convert<U32x8>(blocks);
  U32x8 c1 = convert<U32x8>(blocks >> 32);
  U32x8 c2 = U32x8{} + static_cast<uint32_t>(stream);
  U32x8 c3 = U32x8{} + static_cast<uint32_t>(stream >> 32);
  auto k0 = static_cast<uint32_t>(seed);
  auto k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    U32x8 high0;
    U32x8 low0;
    U32x8 high2;
    U32x8 low2;
    multiply(c0, 0xD2511F53u, high0, low0);
    multiply(c2, 0xCD9E8D57u, high2, low2);
    c0 = high2 ^ c1 ^ k0;
    c1 = low2;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// The same in the order of the sequence: words[4 · j + k] is word k of block first + j.
[[gnu::always_inline]] inline void words_of(uint64_t first, uint64_t seed, uint64_t stream,
                                            uint32_t* words) {
  const PhiloxBlocks blocks = philox_blocks(first, seed, stream);
  uint32_t c[4][8];
  for (int k = 0; k < 4; ++k) store_bits(c[k], blocks.c[k]);
  for (int j = 0; j < 8; ++j)
    for (int k = 0; k < 4; ++k) words[4 * j + k] = c[k][j];
}

}  // namespace
}  // namespace sherd
