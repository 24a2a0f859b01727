#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

/// to[i] = from[i] for floating types, contiguous.
template <class From, class To>
struct Convert {
  const From* from;
  To* to;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
