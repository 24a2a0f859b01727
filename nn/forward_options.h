// ForwardOptions: what a forward pass depends on beside its inputs and parameters.
#pragma once

#include "nn/recompute_choice.h"
#include "tensor/random.h"

namespace sherd {

struct ForwardOptions {
  /// Dropout is active.
  bool training = false;
  /// Of this micro-batch: derived from (seed, step, micro-batch). Equal keys drop equal elements.
  RandomKey key{};
  Recompute recompute{};
  /// Of the loss (autograd/ops/cross_entropy.h).
  double label_smoothing = 0;

  /// For the part of the model called `part` (a name or an index): parts draw independently.
  template <class Part>
  ForwardOptions at(const Part& part) const {
    ForwardOptions inner = *this;
    inner.key = key.derive(part);
    return inner;
  }
};

}  // namespace sherd
