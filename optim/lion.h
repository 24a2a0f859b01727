// Lion: the sign of a momentum.
#pragma once

#include "optim/optimizer.h"

namespace sherd {

struct LionOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
};

/// w = w·(1 - lr·weight_decay) - lr · sign(β₁·m + (1-β₁)·g),  m = β₂·m + (1-β₂)·g
/// g = grad · grad_scale; sign(0) = 0
/// value any floating dtype; state m and (bf16, f16) master, f32 or f64: 12 bytes an element with
/// the gradient for f32, 14 for bf16
/// computed in f32 (f64 for f64)
/// Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", program 1
class Lion : public Optimizer {
 public:
  explicit Lion(const LionOptions& options = {});
  void prepare(Slot& slot) const override;

 protected:
  bool update(const Slot& slot, const StepInput& in, int64_t begin, int64_t end) const override;

 private:
  LionOptions options_;
};

}  // namespace sherd
