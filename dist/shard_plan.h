// ShardPlan: how a module is sharded. A strategy is a row of data; nothing else in dist/ looks at
// its name.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "tensor/dtype.h"

namespace sherd {

/// Where a kind of state is: whole on every rank, or in parts over the shard axis.
enum class Placement { replicate, shard };

struct StateRow {
  Placement parameters = Placement::replicate;
  Placement gradients = Placement::replicate;
  Placement optimizer = Placement::replicate;
  bool operator==(const StateRow&) const = default;
};
inline constexpr StateRow kDdp{};
inline constexpr StateRow kZero1{.optimizer = Placement::shard};
inline constexpr StateRow kZero2{.gradients = Placement::shard, .optimizer = Placement::shard};
inline constexpr StateRow kFullShard{Placement::shard, Placement::shard, Placement::shard};

/// When gradients are reduced over ranks: after each micro-batch, or once for their sum.
enum class Sync { every, last };

/// How micro-batches' gradients are added: one after the other, or in the tree of the ranks' sums.
enum class AccumulateOrder { sequential, tree };

/// How far ahead parameters are gathered.
struct PrefetchPolicy {
  int64_t forward = 1;  ///< units
  int64_t backward = 1;
  /// Not empty: only units of these names are gathered ahead.
  std::vector<std::string> forward_units = {}, backward_units = {};
  /// Of all gathered units but the kept ones; nothing is gathered ahead beyond it.
  int64_t bytes = std::numeric_limits<int64_t>::max();
};

/// Parameters cut along another dim than the first.
struct PlacementRule {
  std::string match;  ///< glob of names
  int dim = 0;
};

/// The unit that a parameter travels in, by its name; "" is the root.
using UnitOf = std::function<std::string(const NamedParameter&)>;

struct ShardPlan {
  StateRow row = kFullShard;
  int replicas = 1;
  /// After forward: 1 releases gathered parameters, 0 keeps them, k > 1 keeps a k-th of them in
  /// groups of k ranks.
  int reshard_after_forward = 1;
  /// Fully sharded parameters of at most so many bytes stay whole on every rank.
  int64_t resident_below = 0;
  UnitOf unit_of;              ///< empty: unit_by_block
  std::string why_units = {};  ///< for who asks: dist/auto_group.h
  PrefetchPolicy prefetch;
  Sync sync = Sync::every;
  AccumulateOrder accumulate_order = AccumulateOrder::sequential;
  DType reduce = DType::f32;
  std::vector<PlacementRule> placements;
};

/// "ddp", "zero1", "zero2", "zero3", "fsdp", "fsdp-keep", "hsdp", with overrides:
/// "fsdp[reshard_after_forward=false]", "hsdp[replicate=4]". Throws usage, with the names known.
/// `ranks`: of the world; hsdp's replicas default to 2 where that divides them.
ShardPlan parse_strategy(std::string_view text, int ranks);

/// Parameters up to the first number in their name: "blocks.3.mlp.up.weight" is of "blocks.3";
/// names without one are of the root.
std::string unit_by_block(const NamedParameter& p);
std::string unit_by_parameter(const NamedParameter& p);
std::string unit_by_model(const NamedParameter& p);
/// Blocks in the order of fields(), joined until they have `min_bytes`; a unit ends before it has
/// more than `max_bytes`, even within a block. The caps are bytes of whole parameters.
UnitOf units_by_bytes(const std::vector<NamedParameter>& all, int64_t min_bytes, int64_t max_bytes);
/// "block", "parameter", "model" or "bytes(MIN,MAX)"; throws usage otherwise.
UnitOf parse_grouping(std::string_view text, const std::vector<NamedParameter>& all);

}  // namespace sherd
