// Stochastic gradient descent, with momentum if asked for.
#pragma once

#include "optim/optimizer.h"

namespace sherd {

struct SgdOptions {
  double momentum = 0;  ///< 0: no state
  bool nesterov = false;
};

/// d = grad · grad_scale + weight_decay · w
/// momentum: s = momentum·s + d, then d = s, or d + momentum·s (Nesterov)
/// w = w - lr · d
/// value any floating dtype; state `momentum` and (bf16, f16) master, f32 or f64
/// throws usage for Nesterov without momentum
/// Sutskever et al. 2013, in the form without (1 - momentum), Nesterov's as PyTorch has it
class Sgd : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options = {});
  void prepare(Slot& slot) const override;

 protected:
  bool update(const Slot& slot, const StepInput& in, int64_t begin, int64_t end) const override;

 private:
  SgdOptions options_;
};

}  // namespace sherd
