// What the updates of all optimizers are written with. Like vec.h only NAME_cpu.cc files include
// it.
#pragma once

#include "tensor/kernels/vec_math.h"
#include "tensor/kernels/vec_random.h"

namespace sherd {
namespace {

template <class T>
inline constexpr bool kHasMaster = sizeof(T) == 2;

/// The value to update: the master where there is one.
template <class T, class R>
[[gnu::always_inline]] inline Vec<R> load_value(const T* value, const R* master, int64_t n) {
  if constexpr (kHasMaster<T>)
    return load(master, n);
  else
    return load(value, n);
}
/// The updated value: to the master and, rounded, to the value.
template <class T, class R>
[[gnu::always_inline]] inline void store_value(T* value, R* master, Vec<R> x, int64_t n) {
  if constexpr (kHasMaster<T>) store(master, x, n);
  store(value, x, n);
}

/// A random word for each element of a tensor: element e has word e % 32 / 8 of block
/// 8 · (e / 32) + e % 8, so that eight blocks are 32 words without a shuffle.
class RandomWords {
 public:
  [[gnu::always_inline]] RandomWords(uint64_t seed, uint64_t stream)
      : seed_(seed), stream_(stream) {}

  /// Those of `first` and the 15 elements behind it; cheapest in order.
  [[gnu::always_inline]] U32x16 at(uint64_t first) {
    const uint64_t group = first / 32;
    if (!filled_ || group != group_) {
      if (filled_ && group == group_ + 1)
        std::memcpy(words_, words_ + 32, 32 * sizeof words_[0]);
      else
        fill(group, words_);
      fill(group + 1, words_ + 32);
      group_ = group;
      filled_ = true;
    }
    return load_bits<U32x16>(words_ + first % 32);
  }

 private:
  [[gnu::noinline]] void fill(uint64_t group, uint32_t* words) const {
    const PhiloxBlocks blocks = philox_blocks(8 * group, seed_, stream_);
    for (int k = 0; k < 4; ++k) store_bits(words + 8 * k, blocks.c[k]);
  }

  const uint64_t seed_, stream_;
  uint64_t group_ = 0;
  bool filled_ = false;
  uint32_t words_[64];  // of two groups
};

/// The lower or the upper neighbour in bf16 of each lane, the upper (away from 0) with the
/// probability of the part that is cut off; `random` is of 16 bits. NaN and infinity stay.
[[gnu::always_inline]] inline void store_rounded_at_random(bf16* p, F32x16 x, U32x16 random,
                                                           int64_t n) {
  const U32x16 u = bits_as<U32x16>(x);
  const U32x16 rounded = (u + random) >> 16;
  // An infinity has no bits that carry, and a NaN is made quiet.
  const U32x16 bits = select_equal(x, x, rounded, (u >> 16) | 0x40u);
  uint16_t narrow[16];
  store_bits(narrow, convert<U16x16>(bits));
  for (int64_t i = 0; i < n; ++i) p[i].bits = narrow[i];
}

}  // namespace
}  // namespace sherd
