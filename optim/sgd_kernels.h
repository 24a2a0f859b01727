#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// See Sgd in optim/sgd.h. Sets *not_finite when a gradient is not finite.
template <class T>
struct Sgd {
  using R = sherd::Accumulate<T>;
  T* value;
  R* master;  ///< where T is bf16 or f16; else unused
  const R* grad;
  R* momentum_sum;  ///< nullptr: no momentum
  R grad_scale, weight_decay, momentum, lr;
  bool nesterov;
  bool* not_finite;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
