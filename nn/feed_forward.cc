#include "nn/feed_forward.h"

#include "autograd/regenerate.h"

namespace sherd {

FeedForward::FeedForward(Tape& tape, const FeedForwardConfig& config)
    : up(tape,
         {.in = config.channels, .out = config.hidden, .dtype = config.dtype, .init = config.init}),
      down(tape, {.in = config.hidden,
                  .out = config.channels,
                  .dtype = config.dtype,
                  .init = config.down_init}),
      dropout(config.dropout) {}

void FeedForward::fields(ModuleVisitor& visit) {
  visit("up", up);
  visit("down", down);
}

Variable FeedForward::forward(const Variable& x, const ForwardOptions& options) const {
  const Context in("mlp");
  const Variable u = up.forward(x);
  Variable y = dropout.forward(down.forward(u, Activation::gelu_tanh), options);
  if (options.recompute.mlp) regenerate(u, [this, x] { return up.forward(x); });
  return y;
}

}  // namespace sherd
