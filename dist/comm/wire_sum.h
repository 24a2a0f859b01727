// The sums of a reduction: how summands become what travels, which ranges a rank sums at once, and
// what becomes of the sums. Bytes and integers; who moves them is the caller's affair.
// Invariant: which ranges a rank sums follows from the cut, the wire and the room alone, so every
// rank knows what each of the others will want of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dist/comm/cut.h"
#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd {

/// One tensor of a reduction, as a rank sums it.
struct SummedItem {
  Cut cut;
  DType wire = DType::f32;
  float scale = 1;                      ///< of halves: summands are divided by it, sums multiplied
  const std::byte* summands = nullptr;  ///< this rank's; halves are made of them in place
  std::byte* sum = nullptr;             ///< where this rank's part of the sum goes
  /// Not null: sums stay halves until nobody reads them, and `num_widened` from here on then become
  /// floats in `widened`. The cut is of the first dim.
  std::byte* halves = nullptr;
  std::byte* widened = nullptr;
  int64_t num_widened = 0;

  /// Halves lie in the first half of the bytes of this rank's whole; so sums that come to lie in
  /// the same bytes wait in the second half, where nobody reads, as if that were a whole, and
  /// become floats at `widened` in the end.
  void keep_halves(std::byte* whole, int rank, std::byte* floats, int64_t num);
};

/// Elements [begin, begin + n) of a whole, to be summed at once; they are `at` in the part.
struct SumRange {
  size_t item;
  int64_t begin, n, at;

  size_t bytes(const std::vector<SummedItem>& items) const {
    return static_cast<size_t>(n) * size_of(items[item].wire);
  }
};

/// Turns this rank's summands into what travels, in place.
void pack(const std::vector<SummedItem>& items, Isa isa);

/// What `rank` sums, of the items that are `found` on any rank, in order. No range takes more than
/// `room` bytes of each rank; 0: any size does.
std::vector<SumRange> ranges_of(const std::vector<SummedItem>& items,
                                const std::vector<char>& found, int rank, size_t room);

/// Where a piece begins in a room, so that kernels find it aligned.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
/// The end of the ranges, from `first` on, that fit into the room together: at least one.
size_t batch_end(const std::vector<SummedItem>& items, const std::vector<SumRange>& ranges,
                 size_t first, size_t room);

/// Sums one range of the ranks' summands `in`, null where a rank has none, to its place.
/// `sums` is working memory.
void sum_range(const std::vector<SummedItem>& items, const SumRange& range,
               std::span<const std::byte* const> in, Isa isa, std::vector<float>& sums);

/// Halves that waited become floats, where they were `found`: nobody reads them any more.
void widen(const std::vector<SummedItem>& items, const std::vector<char>& found, Isa isa);

}  // namespace sherd
