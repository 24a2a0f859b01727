#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// See Lion in optim/lion.h. Sets *not_finite when a gradient is not finite.
template <class T>
struct Lion {
  using R = sherd::Accumulate<T>;
  T* value;
  R* master;  ///< where T is bf16 or f16; else unused
  const R* grad;
  R* m;
  R grad_scale, decay, beta1, beta2, lr;
  bool* not_finite;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
