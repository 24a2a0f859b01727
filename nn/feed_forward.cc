#include "nn/feed_forward.h"

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
  return dropout.forward(down.forward(up.forward(x), Activation::gelu_tanh), options);
}

}  // namespace sherd
