#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

/// sums[j] = sum over i of x[i, j]; items are blocks of kColumns columns. Rows are added in order,
/// in f32 (f64 for f64), in runs of kRun rows whose sums are then added.
template <class T, class Sum>
struct ColumnSums {
  static constexpr int64_t kColumns = 128;
  static constexpr int64_t kRun = 128;
  const T* x;
  Sum* sums;
  int64_t rows;
  int64_t columns;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
