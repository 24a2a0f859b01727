#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// See AdamW in optim/adamw.h; `step_size` is lr / (1 - beta1^t), `correction` 1 / √(1 - beta2^t).
/// Sets *not_finite when a gradient is not finite.
template <class T>
struct AdamW {
  using R = sherd::Accumulate<T>;
  T* value;
  R* master;  ///< where T is bf16 or f16; else unused
  const R* grad;
  R* m;
  R* v;
  R grad_scale, decay, beta1, beta2, step_size, correction, eps;
  bool* not_finite;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
