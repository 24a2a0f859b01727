#include "nn/layer_norm.h"

#include "autograd/ops/layer_norm.h"

namespace sherd {

LayerNorm::LayerNorm(Tape& tape, const LayerNormConfig& config)
    : weight(tape, {config.channels}, config.dtype, Init::ones()),
      bias(tape, {config.channels}, config.dtype, Init::zeros()),
      eps(config.eps) {}

void LayerNorm::fields(ModuleVisitor& visit) {
  visit("weight", weight);
  visit("bias", bias);
}

Variable LayerNorm::forward(const Variable& x) const { return layer_norm(x, weight, bias, eps); }

}  // namespace sherd
