// Which tokens the sample with a given number is. Nothing is remembered but that number, so a run
// is resumed, and divided among any number of ranks, by counting: sample i is the same on all.
// Invariant: with an order other than random, each window of an epoch comes exactly once in it.
#pragma once

#include <cstdint>

namespace sherd {

/// shuffled and sequential: windows that begin every `context` tokens. random: any begin, with
/// replacement.
enum class SampleOrder { shuffled, sequential, random };

/// A permutation of 0 .. size - 1 that needs no memory: a Feistel network over the smallest even
/// number of bits that holds size - 1, walked until it falls inside.
/// Black and Rogaway 2002, "Ciphers with arbitrary finite domains"
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t key);
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  std::uint64_t size_, key_;
  unsigned half_bits_ = 1;
};

class Sampler {
 public:
  /// A sample is context + 1 tokens: the inputs, and the targets one further. Of `num_tokens`, less
  /// than one context at the end is left out.
  /// throws usage if there are not enough tokens for one sample
  Sampler(std::int64_t num_tokens, std::int64_t context, SampleOrder order, std::uint64_t seed);

  /// Where the sample begins; any number >= 0.
  std::int64_t begin_of(std::int64_t sample) const;
  /// Windows in an epoch (random: as many as sequential would have).
  std::int64_t samples_per_epoch() const { return num_windows_; }
  std::int64_t epoch_of(std::int64_t sample) const { return sample / num_windows_; }
  std::int64_t context() const { return context_; }

 private:
  std::int64_t num_tokens_, context_, num_windows_;
  SampleOrder order_;
  std::uint64_t seed_;
};

}  // namespace sherd
