// ShardedSlots: what an optimizer updates of a sharded module, so that a loop of one's own is
// short:
//   tape.backward(loss);
//   slots.finish_gradients();
//   const double norm = slots.norm(1.0 / tokens).norm;
//   slots.step(optimizer, lr, clip_factor(norm, 1) / tokens);
#pragma once

#include <vector>

#include "dist/fully_shard.h"
#include "optim/grad_clip.h"
#include "optim/optimizer.h"

namespace sherd {

/// Used by its rank's thread; all ranks make the same calls in the same order. The module outlives
/// it.
class ShardedSlots {
 public:
  /// A slot for this rank's part of each trainable parameter, without weight decay or state.
  explicit ShardedSlots(ShardedModule& module);

  /// In the order of trainable(). Decay and learning rates are the caller's to set.
  std::vector<Slot>& slots() { return slots_; }
  const std::vector<Slot>& slots() const { return slots_; }

  /// After the last backward of a step: the slots have its gradients, sums over ranks and
  /// micro-batches. Blocks until all ranks are here.
  void finish_gradients();
  /// grad_norm() of the whole gradient: the same on every rank. Blocks until all ranks are here.
  GradNorm norm(double scale, NormKind kind = NormKind::two) const;
  /// Updates with gradient · grad_scale; then the gradients go, and parameters that rest whole are
  /// whole again. Blocks until all ranks are here.
  void step(Optimizer& optimizer, double lr, double grad_scale = 1);
  /// Instead of step(): the gradients go, and nothing is updated. Blocks until all ranks are here.
  void skip();

 private:
  ShardedModule& module_;
  std::vector<Slot> slots_;
};

}  // namespace sherd
