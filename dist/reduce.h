// Reduce: a unit's gradients become sums over ranks, at rest where the plan says.
// Sums of micro-batches: design's numerics, docs/numerics.md.
#pragma once

#include <memory>
#include <vector>

#include "dist/device_mesh.h"
#include "dist/unit.h"

namespace sherd {

/// Adds the whole gradient of one backward pass to what is not reduced yet. Takes the bytes over.
void add_whole(UnitParameter& p, Tensor whole);

/// A unit's reduction in flight.
struct UnitReduction {
  struct Item {
    UnitParameter* parameter;
    Tensor whole;    ///< read by the other ranks until the work is done
    Tensor reduced;  ///< this rank's part of the sum, or the whole sum
    std::shared_ptr<std::vector<char>> present;
    size_t index;  ///< in `present`
  };
  Unit* unit = nullptr;
  std::vector<Item> items;
  std::vector<Work> works;
  double waited_s = 0;  ///< in reduce_start, for a collective that another one needs
};

/// What gradients are divided by on their way in `wire`, as a power of two: no less than the ranks
/// for f16, which ends at 65504; nothing for the others. So a sum overflows only where one rank's
/// gradient does. Exact, but for halves below f16's normal ones.
int wire_shift(DType wire, int ranks);

/// Starts reducing the trainable parameters' whole gradients, which the reduction takes over; a
/// parameter without one takes part with zeros. Sharded gradients: a reduce-scatter over the shard
/// axis, then, where there are replicas, an all-reduce of the part over them. Whole ones: an
/// all-reduce over the world, or, for zero1, a reduce-scatter into their own bytes.
UnitReduction reduce_start(Unit& unit, DeviceMesh& mesh, DType wire);

/// Blocks until it is done, and adds the results to the gradients at rest. `passes`: reductions of
/// this unit before this one in this step.
void reduce_finish(UnitReduction& reduction, AccumulateOrder order, int64_t passes);

/// Joins what AccumulateOrder::tree left, after `passes` reductions.
void join_tree(UnitParameter& p, int64_t passes);

}  // namespace sherd
