// Rows of options such that each pair of values that may occur together does in at least one row:
// what a full product finds of two options that do not get along, in far fewer runs.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace sherd::test {

/// The index of each option's value.
using OptionRow = std::vector<int>;

/// Calls `body` for each row of the full product that `valid` accepts, in lexicographic order.
/// counts: of each option's values, > 0.
inline void each_row(const std::vector<int>& counts,
                     const std::function<bool(const OptionRow&)>& valid,
                     const std::function<void(const OptionRow&)>& body) {
  OptionRow row(counts.size(), 0);
  for (;;) {
    if (valid(row)) body(row);
    size_t i = counts.size();
    while (i > 0 && ++row[i - 1] == counts[i - 1]) row[--i] = 0;
    if (i == 0) return;
  }
}

/// Two options' values: (option, value, later option, value).
using OptionPair = std::pair<std::pair<size_t, int>, std::pair<size_t, int>>;

inline std::vector<OptionPair> pairs_of(const OptionRow& row) {
  std::vector<OptionPair> pairs;
  for (size_t i = 0; i < row.size(); ++i)
    for (size_t j = i + 1; j < row.size(); ++j) pairs.push_back({{i, row[i]}, {j, row[j]}});
  return pairs;
}

/// A covering set, the same each time: again and again the first row that has the most pairs which
/// no row before has.
inline std::vector<OptionRow> cover_pairs(const std::vector<int>& counts,
                                          const std::function<bool(const OptionRow&)>& valid) {
  struct Candidate {
    OptionRow row;
    std::vector<size_t> pairs;  // places in `covered`
    size_t most;                // new ones, at most
  };
  // A pair's place: by its options' values, counted over all options.
  std::vector<size_t> first(counts.size() + 1, 0);
  for (size_t i = 0; i < counts.size(); ++i)
    first[i + 1] = first[i] + static_cast<size_t>(counts[i]);
  std::vector<Candidate> candidates;
  each_row(counts, valid, [&](const OptionRow& row) {
    std::vector<size_t> pairs;
    for (size_t i = 0; i < row.size(); ++i)
      for (size_t j = i + 1; j < row.size(); ++j)
        pairs.push_back((first[i] + static_cast<size_t>(row[i])) * first.back() + first[j] +
                        static_cast<size_t>(row[j]));
    const size_t all = pairs.size();
    candidates.push_back({row, std::move(pairs), all});
  });
  std::vector<char> covered(first.back() * first.back(), 0);
  std::vector<OptionRow> rows;
  for (;;) {
    Candidate* best = nullptr;
    size_t best_new = 0;
    for (auto& c : candidates) {
      if (c.most <= best_new) continue;  // what is new only becomes less
      c.most = 0;
      for (const size_t pair : c.pairs) c.most += covered[pair] == 0 ? 1 : 0;
      if (c.most <= best_new) continue;
      best = &c;
      best_new = c.most;
    }
    if (best == nullptr) return rows;
    for (const size_t pair : best->pairs) covered[pair] = 1;
    rows.push_back(best->row);
  }
}

}  // namespace sherd::test
