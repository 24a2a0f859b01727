// Rows [R, C] are contiguous. A null pointer is an operand or a result that is not there.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// Items are rows. The row is read from memory once: its later passes find it in the cache.
template <class T>
struct LayerNorm {
  using A = Accumulate<T>;
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  A* mean;
  A* rstd;
  int64_t columns;
  A eps;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// Items are parts of `rows_per_part` rows: dx of each row, and the part's own sums over rows for
/// dweight and dbias [parts, C], both or none.
template <class T>
struct LayerNormBackward {
  using A = Accumulate<T>;
  const T* x;
  const T* weight;
  const T* dy;
  const A* mean;
  const A* rstd;
  T* dx;
  A* dweight_parts;
  A* dbias_parts;
  int64_t rows;
  int64_t columns;
  int64_t rows_per_part;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// total[c] = sum over p of parts[p, c], p from 0 up; items are columns.
template <class A>
struct SumParts {
  const A* parts;
  A* total;
  int64_t count;
  int64_t columns;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
