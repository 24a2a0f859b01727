#include "nn/rms_norm.h"

#include "autograd/ops/rms_norm.h"

namespace sherd {

RmsNorm::RmsNorm(Tape& tape, const RmsNormConfig& config)
    : weight(tape, {config.channels}, config.dtype, Init::ones()), eps(config.eps) {}

void RmsNorm::fields(ModuleVisitor& visit) { visit("weight", weight); }

Variable RmsNorm::forward(const Variable& x) const { return rms_norm(x, weight, eps); }

}  // namespace sherd
