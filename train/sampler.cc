#include "train/sampler.h"

#include "base/ceil_log2.h"
#include "base/error.h"

namespace sherd {
namespace {

constexpr int kRounds = 8;

/// Splitmix64's output function: every bit of the result depends on every bit of x.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// 0 .. size - 1, each as likely as the others up to size / 2^64.
std::uint64_t scaled(std::uint64_t random, std::uint64_t size) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(random) * size) >> 64);
}

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size), key_(key) {
  check(size >= 1, "permutation: expected at least one element");
  const auto bits = static_cast<unsigned>(ceil_log2(size));
  if (bits > 2) half_bits_ = (bits + 1) / 2;
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  check(i < size_, "permutation: expected less than", size_, "got", i);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = i >> half_bits_, right = i & mask;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t f =
          mixed((key_ + static_cast<std::uint64_t>(round) * 0xd1342543de82ef95) ^ mixed(right));
      const std::uint64_t next = left ^ (f & mask);
      left = right;
      right = next;
    }
    i = left << half_bits_ | right;
    // At most four times on average: the domain is less than four times the size.
  } while (i >= size_);
  return i;
}

Sampler::Sampler(std::int64_t num_tokens, std::int64_t context, SampleOrder order,
                 std::uint64_t seed)
    : num_tokens_(num_tokens), context_(context), order_(order), seed_(seed) {
  check(context >= 1, "sampler: expected a context >= 1, got", context);
  check(num_tokens > context, "sampler: a sample needs context + 1 =", context + 1,
        "tokens, but there are", num_tokens);
  num_windows_ = (num_tokens - 1) / context;
}

std::int64_t Sampler::begin_of(std::int64_t sample) const {
  check(sample >= 0, "sampler: expected a sample >= 0, got", sample);
  const auto i = static_cast<std::uint64_t>(sample);
  const auto n = static_cast<std::uint64_t>(num_windows_);
  switch (order_) {
    case SampleOrder::sequential:
      return static_cast<std::int64_t>(i % n) * context_;
    case SampleOrder::shuffled: {
      const Permutation order(n, mixed(mixed(seed_) + i / n));
      return static_cast<std::int64_t>(order(i % n)) * context_;
    }
    case SampleOrder::random:
      break;
  }
  return static_cast<std::int64_t>(
      scaled(mixed(mixed(seed_) + i), static_cast<std::uint64_t>(num_tokens_ - context_)));
}

}  // namespace sherd
