#include "nn/linear.h"

#include "autograd/ops/linear.h"

namespace sherd {

Linear::Linear(Tape& tape, const LinearConfig& config)
    : weight(tape, {config.out, config.in}, config.dtype,
             config.init.value_or(Init::kaiming_uniform(config.in))) {
  if (config.bias) bias = Parameter(tape, {config.out}, config.dtype, Init::zeros());
}

void Linear::fields(ModuleVisitor& visit) {
  visit("weight", weight);
  if (bias) visit("bias", bias);
}

Variable Linear::forward(const Variable& x, Activation input_activation) const {
  return linear(x, weight, bias, input_activation);
}

}  // namespace sherd
