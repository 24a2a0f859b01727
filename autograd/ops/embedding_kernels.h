#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// total[indices[n], c] += dy[n, c], n from 0 up. Items are columns, so that a total is formed by
/// one thread, in order.
template <class T, class Index>
struct EmbeddingBackward {
  const Index* indices;
  const T* dy;
  Accumulate<T>* total;
  int64_t count;
  int64_t columns;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
