// Unit: parameters that are gathered together and whose gradients are reduced together. Data only;
// gather.h, reduce.h and schedule.h say what is done with it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "dist/comm/communicator.h"
#include "dist/shard_plan.h"

namespace sherd {

/// One parameter of a unit, as this rank sees it.
struct UnitParameter {
  std::string name;
  Parameter parameter;  ///< the module's; its bytes come and go where parameters are sharded
  StateRow row;
  int dim = 0;       ///< that is cut
  Cut cut;           ///< of the whole over the shard axis
  Shape part_shape;  ///< of this rank's part
  /// This rank's part: what the optimizer updates. A view of the whole where that rests.
  Tensor local;
  /// Where forward left a part of a smaller group (reshard_after_forward = k).
  Tensor group_local;

  /// The whole gradient: of the backward pass that runs, or the sum of passes not reduced yet.
  Tensor whole_grad;
  /// Delivered by the backward pass that runs.
  bool delivered = false;
  /// Reduced over ranks, summed over micro-batches: whole or this rank's part, as the row says.
  Tensor grad;
  /// With AccumulateOrder::tree: sums of 2^i micro-batches where bit i of their count is set.
  std::vector<Tensor> tree;

  bool is_sharded() const { return row.parameters == Placement::shard; }
  bool trainable() const { return !parameter.frozen(); }
};

struct Unit {
  std::string name;  ///< "blocks.3"; "" is the root
  std::vector<UnitParameter> parameters;
  /// The sharded ones' parts, readable by the other ranks.
  Resting resting;
  /// Bytes of the sharded parameters when whole.
  int64_t gathered_bytes = 0;

  // --- state
  enum class State { released, gathering, gathered };
  State state = State::released;
  Work gathering;
  /// Stays gathered from its first use in forward to its last in backward.
  bool kept = false;
  /// A part of a smaller group is left from forward.
  bool in_group = false;
  bool prefetched = false;  ///< gathered ahead, and not used yet
  uint64_t last_op = 0;     ///< Tape::ops() when it was last read

  int64_t reductions = 0;  ///< begun and ended in this step

  /// Whether any parameter is.
  bool trainable() const {
    return std::any_of(parameters.begin(), parameters.end(),
                       [](const UnitParameter& p) { return p.trainable(); });
  }
  std::string label() const { return name.empty() ? "root" : name; }
  bool gathers() const { return gathered_bytes > 0; }
};

}  // namespace sherd
