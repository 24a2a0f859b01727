// GatedFeedForward: the feed-forward part of a transformer block with a SwiGLU gate, no biases.
// Shazeer 2020, "GLU Variants Improve Transformer".
#pragma once

#include "nn/dropout.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"

namespace sherd {

/// y = down(silu(g) · u), [g, u] = gate_up(x), side by side
struct GatedFeedForward : Module {
  Linear gate_up;  ///< [2 hidden, channels]
  Linear down;     ///< [channels, hidden]
  Dropout dropout;

  GatedFeedForward(Tape& tape, const FeedForwardConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// x [..., channels] → like x. Saves x, gate_up(x) and down's input.
  Variable forward(const Variable& x, const ForwardOptions& options) const;
};

}  // namespace sherd
