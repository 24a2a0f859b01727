// Rows [R, C] are contiguous. A null pointer is an operand or a result that is not there.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// Items are rows.
template <class T>
struct RmsNorm {
  using A = Accumulate<T>;
  const T* x;
  const T* weight;
  T* y;
  A* rstd;
  int64_t columns;
  A eps;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// Items are parts of `rows_per_part` rows: dx of each row, and the part's own sum over rows for
/// dweight [parts, C].
template <class T>
struct RmsNormBackward {
  using A = Accumulate<T>;
  const T* x;
  const T* weight;
  const T* dy;
  const A* rstd;
  T* dx;
  A* dweight_parts;
  int64_t rows;
  int64_t columns;
  int64_t rows_per_part;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
