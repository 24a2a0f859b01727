#include "nn/gated_feed_forward.h"

#include "autograd/ops/swiglu.h"
#include "autograd/regenerate.h"

namespace sherd {

GatedFeedForward::GatedFeedForward(Tape& tape, const FeedForwardConfig& config)
    : gate_up(tape, {.in = config.channels,
                     .out = 2 * config.hidden,
                     .bias = false,
                     .dtype = config.dtype,
                     .init = config.init}),
      down(tape, {.in = config.hidden,
                  .out = config.channels,
                  .bias = false,
                  .dtype = config.dtype,
                  .init = config.down_init}),
      dropout(config.dropout) {}

void GatedFeedForward::fields(ModuleVisitor& visit) {
  visit("gate_up", gate_up);
  visit("down", down);
}

Variable GatedFeedForward::forward(const Variable& x, const ForwardOptions& options) const {
  const Context in("mlp");
  const Variable g = gate_up.forward(x);
  const Variable s = swiglu(g);
  Variable y = dropout.forward(down.forward(s), options);
  if (options.recompute.activation || options.recompute.mlp)
    regenerate(s, [g] { return swiglu(g); });
  if (options.recompute.mlp) regenerate(g, [this, x] { return gate_up.forward(x); });
  return y;
}

}  // namespace sherd
