#include "nn/models/mlp.h"

namespace sherd {

void MlpConfig::validate() const {
  check(in > 0 && out > 0, "mlp: in and out must be positive: in", in, "out", out);
  for (const int64_t width : hidden) check(width > 0, "mlp: hidden must be positive:", width);
}

Mlp::Mlp(Tape& tape, const MlpConfig& config) : activation(config.activation) {
  config.validate();
  int64_t width = config.in;
  const auto add_layer = [&](int64_t out) {
    layers.emplace_back(tape, LinearConfig{.in = width, .out = out, .dtype = config.dtype});
    width = out;
  };
  for (const int64_t hidden : config.hidden) add_layer(hidden);
  add_layer(config.out);
  name_parameters(*this);
}

void Mlp::fields(ModuleVisitor& visit) { visit("layers", layers); }

Variable Mlp::forward(const Variable& x) const {
  Variable y = x;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Context in("layers.", i);
    y = layers[i].forward(y, i == 0 ? Activation::none : activation);
  }
  return y;
}

LossResult Mlp::loss(const Variable& x, const Tensor& classes) const {
  return cross_entropy(forward(x), classes);
}

}  // namespace sherd
