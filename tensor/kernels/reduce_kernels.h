#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

enum class Reduction : uint8_t { sum, max };

/// Columns that one item covers.
inline constexpr int64_t kReduceColumns = 256;

/// y[a, k, c] = scale · Σ (or max) over rows r of chunk k of x[a, r, c]; chunks have `chunk` rows,
/// the last one the rest. Everything contiguous. Sums are in Y: f32, or f64 for f64. Rows are added
/// from the first to the last; with C = 1 in lanes first, then in a fixed tree.
/// Items: (a, k, block of columns), the last fastest.
template <class X, class Y>
struct Reduce {
  const X* x;
  Y* y;
  int64_t rows;     // R
  int64_t columns;  // C
  int64_t chunk;
  int64_t chunks;
  double scale;
  Reduction f;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
