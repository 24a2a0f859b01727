#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

/// total[i] += x[i]
template <class Total, class X>
struct Accumulate {
  Total* total;
  const X* x;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
