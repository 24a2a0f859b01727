// Counter-based random numbers: a value depends on (key, global index) alone, never on threads,
// ranks, instruction sets or what was drawn before.
// Invariant: the numbers of a key never change.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tensor/tensor.h"

namespace sherd {

/// Names a sequence of random numbers.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;

  /// Another sequence of the same seed, for a part of what this one is for: a parameter's name, a
  /// step, a sample. Depends on the order of derivations.
  RandomKey derive(std::string_view name) const;
  RandomKey derive(uint64_t number) const;
  friend bool operator==(RandomKey, RandomKey) = default;
};

/// Four random words of (counter, key).
/// Philox4x32-10; Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3"
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// The words of elements 4 · block … 4 · block + 3 of a key's sequence.
constexpr std::array<uint32_t, 4> random_words(RandomKey key, uint64_t block) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  return philox4x32({low(block), high(block), low(key.stream), high(key.stream)},
                    {low(key.seed), high(key.seed)});
}

/// t[i] = low + (high - low) · u(key, first + i), i row-major, u in [0, 1) with 24 bits
/// t f32|f64|bf16|f16, any strides; rounding may reach `high`. Bumps the version.
/// `first`: the global index of t's first element, for who makes a part of a tensor (by rows)
void fill_uniform(const Tensor& t, RandomKey key, double low, double high, int64_t first = 0);

/// t[i] = mean + deviation · z(key, first + i), z standard normal; the rest as fill_uniform
/// in f64 until it is rounded to t's dtype, with own polynomials: the same bits on every machine
/// Box & Muller 1958
void fill_normal(const Tensor& t, RandomKey key, double mean, double deviation, int64_t first = 0);

}  // namespace sherd
