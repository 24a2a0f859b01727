// One parallel pass over many tensors, however small: tensors are cut, or put together, to tasks of
// about one size.
// Invariant: the cuts depend on the sizes alone, never on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/runtime.h"

namespace sherd {

/// Part [begin, end) of tensor `index`.
struct Piece {
  size_t index = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Pieces of at most `most` items, a multiple of it from the tensor's start; and where each task
/// begins among them: tasks have about `most` items.
struct PieceList {
  std::vector<Piece> pieces;
  std::vector<size_t> task_starts;  ///< one more than there are tasks
};

inline PieceList cut_pieces(std::span<const int64_t> sizes, int64_t most) {
  PieceList list;
  int64_t filled = most;  // items of the last task
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (int64_t begin = 0; begin < sizes[i]; begin += most) {
      const int64_t end = std::min(sizes[i], begin + most);
      if (filled + (end - begin) > most) {
        list.task_starts.push_back(list.pieces.size());
        filled = 0;
      }
      filled += end - begin;
      list.pieces.push_back({i, begin, end});
    }
  }
  list.task_starts.push_back(list.pieces.size());
  return list;
}

/// Calls body(index, begin, end) for pieces that cover [0, sizes[index]) of every tensor, on the
/// runtime's threads in one dispatch. On meta nothing runs.
template <class Body>
void for_pieces(Runtime& runtime, std::span<const int64_t> sizes, const Body& body,
                int64_t most = 32768) {
  if (runtime.device().is_meta()) return;
  const PieceList list = cut_pieces(sizes, most);
  runtime.pool().run(static_cast<int64_t>(list.task_starts.size()) - 1, [&](int64_t task) {
    const auto first = list.task_starts[static_cast<size_t>(task)];
    const auto last = list.task_starts[static_cast<size_t>(task) + 1];
    for (size_t i = first; i < last; ++i)
      body(list.pieces[i].index, list.pieces[i].begin, list.pieces[i].end);
  });
}

}  // namespace sherd
