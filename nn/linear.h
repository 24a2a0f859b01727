// Linear: the layer around the op of that name.
#pragma once

#include <optional>

#include "autograd/ops/activation.h"
#include "nn/module.h"

namespace sherd {

struct LinearConfig {
  int64_t in = 0;
  int64_t out = 0;
  bool bias = true;
  DType dtype = DType::f32;
  /// Of the weight; none: kaiming_uniform(in). The bias starts at 0.
  std::optional<Init> init = std::nullopt;
};

/// y = act(x) Wᵀ + b
struct Linear : Module {
  Parameter weight;  ///< [out, in]
  Parameter bias;    ///< [out], or none

  Linear(Tape& tape, const LinearConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// x [..., in] → [..., out]. An input activation is applied inside, so that only x is saved.
  Variable forward(const Variable& x, Activation input_activation = Activation::none) const;
};

}  // namespace sherd
