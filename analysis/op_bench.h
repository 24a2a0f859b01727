// How fast the ops run that move memory rather than multiply: beside this machine's triad.
#pragma once

#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/runtime.h"

namespace sherd {

struct OpTime {
  std::string op;
  double ms;     ///< median of one call
  double bytes;  ///< that it must read and write at the least

  double gb_per_s() const { return bytes / ms / 1e6; }
};

/// STREAM's triad first (a = b + s·c in f32, over arrays that no cache holds), then the forward
/// pass of each op over [rows, columns] of `dtype`, and the optimizer's update and gradient norm
/// over as many parameters. `seconds` for each, in turns.
std::vector<OpTime> time_ops(const RuntimePtr& runtime, DType dtype, int64_t rows, int64_t columns,
                             double seconds);

}  // namespace sherd
