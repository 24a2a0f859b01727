// LayerNorm: the layer around the op of that name.
#pragma once

#include "nn/module.h"

namespace sherd {

struct LayerNormConfig {
  int64_t channels = 0;
  double eps = 1e-5;
  DType dtype = DType::f32;
};

/// y = (x − mean(x)) / √(var(x) + eps) · weight + bias, over the last dim
struct LayerNorm : Module {
  Parameter weight;  ///< [channels], starts at 1
  Parameter bias;    ///< [channels], starts at 0
  double eps;

  LayerNorm(Tape& tape, const LayerNormConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// x [..., channels] → like x
  Variable forward(const Variable& x) const;
};

}  // namespace sherd
