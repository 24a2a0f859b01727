// Sums over ranks in one fixed tree, and the rounding of what travels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// out[i] = factor · round(tree sum of in[0][i], in[1][i], …). The tree over m items: left = the
/// first p, p the largest power of two < m; right = the rest. A null `in[r]` counts as zeros; `out`
/// may be one of them. W: what values travel in (f32, bf16, f16; f64 sums in f64).
template <class W>
struct TreeSum {
  using Sum = sherd::Accumulate<W>;
  const W* const* in;  ///< of `count` ranks; at most 2^30
  int count;
  Sum* out;
  float factor;  ///< of halves; else not used
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// Rounds n floats, times `factor`, to W in place: they come to lie in the first half of their
/// bytes. Run all at once, [0, n): values move.
template <class W>
struct PackInPlace {
  void* data;
  float factor;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// out[i] = factor · in[i] for n floats `out` and n values `in` of W, which may lie in out's bytes
/// as far behind as the last value ends where out ends, or farther. Run all at once, [0, n).
template <class W>
struct Widen {
  const void* in;
  void* out;
  float factor;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
