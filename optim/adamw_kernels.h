#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// See AdamW in optim/adamw.h; `step_size` is lr / (1 - beta1^t), `correction` 1 / √(1 - beta2^t).
/// M is the moments' type: that of sums, or bf16. Sets *not_finite when a gradient is not finite.
template <class T, class M>
struct AdamW {
  using R = sherd::Accumulate<T>;
  T* value;
  R* master;  ///< where T is bf16 or f16; else unused
  const R* grad;
  M* m;
  M* v;
  R grad_scale, decay, beta1, beta2, step_size, correction, eps;
  bool* not_finite;
  /// bf16 moments: element i is number i + shift of the whole, and rounded by its word.
  uint64_t seed = 0, stream = 0;
  int64_t shift = 0;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
