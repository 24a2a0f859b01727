// Rows [N, V] of logits are contiguous; items are rows. A row whose target is `ignore_index` has
// loss 0 and gradient 0; the other targets are in [0, V), which the kernels do not check.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// With q = (1 - smoothing) · onehot(target) + smoothing / V: row_loss = logΣexp(logits) -
/// Σ q · logits; dlogits = (softmax(logits) - q) · scale. Pointers that may be null, when not
/// wanted:
/// - row_stats [N, 2] gets the row's max and 1 ÷ Σexp(x - max);
/// - dlogits; it may be logits itself where D is T;
/// - exps [N, V] keeps exponentials between the two passes over a row, so that each is computed
/// once;
///   it may be logits, or dlogits where D is T. Not for T bf16 and f16, which would round them.
template <class T, class D>
struct CrossEntropyRows {
  using A = Accumulate<T>;
  const T* logits;
  const int32_t* targets;
  int32_t ignore_index;
  int64_t columns;
  A scale;
  A smoothing;
  double* row_loss;
  A* row_stats;
  D* dlogits;
  T* exps = nullptr;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// dlogits = (softmax(logits) - q) · scale, from row_stats.
template <class T>
struct CrossEntropyBackward {
  using A = Accumulate<T>;
  const T* logits;
  const int32_t* targets;
  int32_t ignore_index;
  int64_t columns;
  A scale;
  A smoothing;
  const A* row_stats;
  T* dlogits;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
