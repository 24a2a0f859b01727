// Rows [N, V] of logits are contiguous; items are rows. A row whose target is `ignore_index` has
// loss 0 and gradient 0; the other targets are in [0, V), which the kernels do not check.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// row_loss = logΣexp(logits) - logits[target]; dlogits = (softmax(logits) - onehot(target)) ·
/// scale. The row is read from memory once for the loss and once for dlogits. dlogits may be logits
/// itself where D is T; null: not wanted. row_stats, null or [N, 2], gets the row's max and 1 ÷
/// Σexp(x - max).
template <class T, class D>
struct CrossEntropyRows {
  using A = Accumulate<T>;
  const T* logits;
  const int32_t* targets;
  int32_t ignore_index;
  int64_t columns;
  A scale;
  double* row_loss;
  A* row_stats;
  D* dlogits;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// dlogits = (softmax(logits) - onehot(target)) · scale, from row_stats.
template <class T>
struct CrossEntropyBackward {
  using A = Accumulate<T>;
  const T* logits;
  const int32_t* targets;
  int32_t ignore_index;
  int64_t columns;
  A scale;
  const A* row_stats;
  T* dlogits;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
