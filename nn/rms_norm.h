// RmsNorm: the layer around the op of that name.
#pragma once

#include "nn/module.h"

namespace sherd {

struct RmsNormConfig {
  int64_t channels = 0;
  double eps = 1e-5;
  DType dtype = DType::f32;
};

/// y = x / √(mean(x²) + eps) · weight, over the last dim
struct RmsNorm : Module {
  Parameter weight;  ///< [channels], starts at 1
  double eps;

  RmsNorm(Tape& tape, const RmsNormConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// x [..., channels] → like x
  Variable forward(const Variable& x) const;
};

}  // namespace sherd
