#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

/// sums[i - begin] = Σ x² over segment i of a matrix [rows, columns], in f64 and in one fixed
/// order; each row is cut into segments of at most `segment` columns.
template <class T>
struct SegmentSquares {
  const T* x;
  int64_t columns;
  int64_t segment;
  int64_t per_row;  ///< segments of a row
  double* sums;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// maxima[i - begin] = max |x| over the same segments; infinity if one is not finite.
template <class T>
struct SegmentMaxima {
  const T* x;
  int64_t columns;
  int64_t segment;
  int64_t per_row;
  double* maxima;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
