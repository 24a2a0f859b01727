// Cut: which range of a dim each rank has. Pure integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sherd {

/// A tensor seen as [outer, dim, inner], of which rank r has [starts[r], starts[r+1]) of `dim`.
struct Cut {
  int64_t outer = 1;
  int64_t inner = 1;
  std::vector<int64_t> starts;  ///< one more than there are ranks, rising from 0

  int64_t dim() const { return starts.back(); }
  int64_t begin(int rank) const { return starts[static_cast<size_t>(rank)]; }
  int64_t size(int rank) const { return begin(rank + 1) - begin(rank); }
  /// Elements of one rank's part, and of the whole.
  int64_t numel(int rank) const { return outer * size(rank) * inner; }
  int64_t numel() const { return outer * dim() * inner; }

  bool operator==(const Cut&) const = default;
};

/// Ranges of ceil(dim / ranks) each; the last ones may be shorter or empty.
inline Cut even_cut(int64_t outer, int64_t dim, int64_t inner, int ranks) {
  Cut cut{outer, inner, {0}};
  const int64_t most = (dim + ranks - 1) / ranks;
  for (int r = 1; r <= ranks; ++r) cut.starts.push_back(most * r < dim ? most * r : dim);
  return cut;
}

}  // namespace sherd
