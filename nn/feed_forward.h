// FeedForward: the two linear layers of a transformer block, GELU (tanh) between them.
#pragma once

#include "nn/dropout.h"
#include "nn/linear.h"

namespace sherd {

struct FeedForwardConfig {
  int64_t channels = 0;
  int64_t hidden = 0;
  double dropout = 0;  ///< of the output
  DType dtype = DType::f32;
  Init init = Init::normal(0.02);
  Init down_init = Init::normal(0.02);
};

/// y = down(gelu(up(x)))
struct FeedForward : Module {
  Linear up;    ///< [hidden, channels]
  Linear down;  ///< [channels, hidden]
  Dropout dropout;

  FeedForward(Tape& tape, const FeedForwardConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// x [..., channels] → like x. Saves x and up(x); gelu(up(x)) is formed anew inside `down`.
  Variable forward(const Variable& x, const ForwardOptions& options) const;
};

}  // namespace sherd
