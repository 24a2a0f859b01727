#include "dist/comm/communicator.h"

#include <algorithm>

namespace sherd {

const char* name_of(Traffic traffic) {
  constexpr std::array<const char*, kTraffics> kNames = {
      "all_gather", "reduce_scatter", "all_reduce", "control", "eval", "checkpoint", "padding"};
  return kNames[static_cast<size_t>(traffic)];
}

namespace {

template <class Combine>
void combine_words(Communicator& comm, std::span<int64_t> words, const CallTag& tag,
                   const Combine& combine) {
  const auto all = exchange_all<int64_t>(comm, words, tag);
  for (size_t i = 0; i < words.size(); ++i) {
    int64_t total = all[i];
    for (size_t at = i + words.size(); at < all.size(); at += words.size())
      total = combine(total, all[at]);
    words[i] = total;
  }
}

}  // namespace

void sum_words(Communicator& comm, std::span<int64_t> words, const CallTag& tag) {
  combine_words(comm, words, tag, [](int64_t a, int64_t b) { return a + b; });
}

void max_words(Communicator& comm, std::span<int64_t> words, const CallTag& tag) {
  combine_words(comm, words, tag, [](int64_t a, int64_t b) { return std::max(a, b); });
}

}  // namespace sherd
