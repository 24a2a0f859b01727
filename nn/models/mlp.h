// Mlp: linear layers with an activation between them; the smallest model.
#pragma once

#include <vector>

#include "autograd/ops/cross_entropy.h"
#include "nn/linear.h"

namespace sherd {

struct MlpConfig {
  int64_t in = 0;
  std::vector<int64_t> hidden;  ///< width of each hidden layer
  int64_t out = 0;
  Activation activation = Activation::relu;
  DType dtype = DType::f32;

  /// Throws usage on a width that is not positive.
  void validate() const;
};

/// Names are layers.0.weight, layers.0.bias, …; weights start Kaiming uniform, biases at 0.
struct Mlp : Module {
  Activation activation;
  std::vector<Linear> layers;

  Mlp(Tape& tape, const MlpConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// x [..., in] → [..., out]; saves x and each layer's output before the activation.
  Variable forward(const Variable& x) const;
  /// x [B, in], classes [B] i32 → the sum of −log p(class) over the classes that are not −1, and
  /// their number.
  LossResult loss(const Variable& x, const Tensor& classes) const;
};

}  // namespace sherd
