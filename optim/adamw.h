// AdamW: one pass per step over value, gradient and both moments.
#pragma once

#include "optim/optimizer.h"

namespace sherd {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  /// Of m and v: f32, or bf16, rounded at random so that the mean is right: 4 bytes less an
  /// element. f64 values keep f64 moments.
  DType moments = DType::f32;
  uint64_t seed = 0;  ///< of that rounding
};

/// m = β₁·m + (1-β₁)·g,  v = β₂·v + (1-β₂)·g²,  g = grad · grad_scale
/// w = w·(1 - lr·weight_decay) - lr · (m / (1-β₁ᵗ)) / (√(v / (1-β₂ᵗ)) + eps)
/// value any floating dtype; state m, v and (bf16, f16) master, f32 or f64
/// 16 bytes an element with the gradient for f32, 18 for bf16
/// a bf16 moment x is one of its two neighbours, the nearer the likelier, so that the mean is x:
/// the bits depend on (seed, step, name, element's number in the whole parameter) alone computed in
/// f32 (f64 for f64); a bf16 value is its master rounded, always throws usage for moments of
/// another dtype Loshchilov & Hutter 2019, algorithm 2; Gupta et al. 2015, section 3 (stochastic
/// rounding)
class AdamW : public Optimizer {
 public:
  explicit AdamW(const AdamWOptions& options = {});
  void prepare(Slot& slot) const override;

 protected:
  bool update(const Slot& slot, const StepInput& in, int64_t begin, int64_t end) const override;

 private:
  AdamWOptions options_;
};

}  // namespace sherd
