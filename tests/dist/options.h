// Everything that must not change a result, and what it is compared at: a table of options whose
// full product the tests run in part, and whose pairs they run all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/dist/chain.h"
#include "tests/support/pairwise.h"

namespace sherd::test {

// Sanitizers look at what runs, not at values: the second step runs nothing that a third does not.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSteps = 3;
#else
constexpr int kSteps = 20;
#endif

/// A row of the table.
struct Options {
  int ranks = 1;
  std::string strategy = "ddp";
  std::string group = "block";
  std::string prefetch = "1";
  Recompute recompute = kRecomputeNone;
  Sync sync = Sync::every;
  double dropout = 0.1;
  DType dtype = DType::f32;
  DType wire = DType::f32;
  AccumulateOrder order = AccumulateOrder::sequential;
  bool tied = true;

  std::string name() const {
    return detail::concat(ranks, " ranks, ", strategy, ", units: ", group, ", prefetch: ", prefetch,
                          recompute == kRecomputeNone ? "" : ", recompute",
                          sync == Sync::every ? ", sync=every" : ", sync=last", ", dropout ",
                          dropout, ", ", name_of(dtype), ", reduced in ", name_of(wire),
                          order == AccumulateOrder::tree ? ", tree" : "", tied ? ", tied" : "");
  }

  bool operator==(const Options&) const = default;
  /// The plainest options that give the same bits (docs/numerics.md).
  Options reference() const {
    Options o = *this;
    o.strategy = "ddp";
    o.group = "block";
    o.prefetch = "1";
    o.recompute = kRecomputeNone;
    return o;
  }
};

/// The values of each option.
struct OptionTable {
  std::vector<int> ranks{1, 2, 3, 4, 8};
  std::vector<std::string> strategies{"ddp",
                                      "zero1",
                                      "zero2",
                                      "zero3[resident_below=100]",
                                      "fsdp",
                                      "fsdp[reshard_after_forward=false]",
                                      "fsdp[reshard_after_forward=2]",
                                      "fsdp[reshard_after_forward=4]",
                                      "hsdp[replicate=1]",
                                      "hsdp[replicate=2]",
                                      "hsdp[replicate=4]"};
  std::vector<std::string> groups{"block", "parameter", "model", "bytes(500,1500)"};
  std::vector<std::string> prefetches{"0", "1", "2", "lists", "bytes"};
  std::vector<Recompute> recomputes{kRecomputeNone, kRecomputeBlock};
  std::vector<Sync> syncs{Sync::every, Sync::last};
  std::vector<double> dropouts{0, 0.1};
  std::vector<DType> dtypes{DType::f32, DType::bf16, DType::f16};
  std::vector<DType> wires{DType::f32, DType::bf16, DType::f16};
  std::vector<AccumulateOrder> orders{AccumulateOrder::sequential, AccumulateOrder::tree};
  std::vector<bool> tied{true, false};

  std::vector<int> counts() const {
    std::vector<int> counts;
    for (const size_t n :
         {ranks.size(), strategies.size(), groups.size(), prefetches.size(), recomputes.size(),
          syncs.size(), dropouts.size(), dtypes.size(), wires.size(), orders.size(), tied.size()})
      counts.push_back(static_cast<int>(n));
    return counts;
  }
  Options at(const OptionRow& row) const {
    const auto pick = [&](const auto& values, size_t i) {
      return values[static_cast<size_t>(row[i])];
    };
    return {.ranks = pick(ranks, 0),
            .strategy = pick(strategies, 1),
            .group = pick(groups, 2),
            .prefetch = pick(prefetches, 3),
            .recompute = pick(recomputes, 4),
            .sync = pick(syncs, 5),
            .dropout = pick(dropouts, 6),
            .dtype = pick(dtypes, 7),
            .wire = pick(wires, 8),
            .order = pick(orders, 9),
            .tied = pick(tied, 10)};
  }
};

/// The one rule of what is left out: a row that has no meaning (a number of ranks or replicas that
/// does not divide, a tree of sums that are not made in f32 after each micro-batch), one that
/// promises no equality (hsdp that rounds twice), or one that another row is (gathering ahead where
/// nothing is gathered).
inline bool is_valid(const Options& o) {
  const ShardPlan plan = parse_strategy(o.strategy, o.ranks);
  if (o.ranks % plan.replicas != 0) return false;
  const int shards = o.ranks / plan.replicas;
  if (plan.reshard_after_forward > 1 && shards % plan.reshard_after_forward != 0) return false;
  if (o.order == AccumulateOrder::tree && (o.sync != Sync::every || o.wire != DType::f32))
    return false;
  const bool power_of_two = (shards & (shards - 1)) == 0;
  if (plan.replicas > 1 && (!power_of_two || o.wire != DType::f32)) return false;
  return plan.row.parameters == Placement::shard || o.prefetch == "1";
}

/// All pairs of values, in the order of the table's ranks.
inline std::vector<Options> covering_set() {
  const OptionTable table;
  const auto rows =
      cover_pairs(table.counts(), [&](const OptionRow& row) { return is_valid(table.at(row)); });
  std::vector<Options> all;
  for (const auto& row : rows) all.push_back(table.at(row));
  std::stable_sort(all.begin(), all.end(),
                   [](const Options& a, const Options& b) { return a.ranks < b.ranks; });
  return all;
}

/// A GPT of two blocks whose step takes well under 2 ms.
inline SmallTraining training_of(const Options& o) {
  return {.ranks = o.ranks,
          .accumulate = 4,
          .steps = kSteps,
          .batch = 1,
          .layers = 2,
          .channels = 8,
          .dropout = o.dropout,
          .tied = o.tied,
          .recompute = o.recompute,
          .dtype = o.dtype};
}

/// For the model of `job`, whose units some options name.
template <class Model>
ShardPlan plan_of(const Options& o, const Job<Model>& job) {
  Tape tape(Runtime::create({}));
  Model model = job.make(tape);
  ShardPlan plan = parse_strategy(o.strategy, o.ranks);
  plan.sync = o.sync;
  plan.reduce = o.wire;
  plan.accumulate_order = o.order;
  plan.unit_of = parse_grouping(o.group, parameters(model));
  if (o.prefetch == "lists") {
    // Another half of the units in each direction.
    const auto solo = solo_communicator(tape.runtime());
    DeviceMesh mesh(*solo);
    ShardPlan one;
    one.unit_of = plan.unit_of;
    const auto sharded = fully_shard(model, tape, mesh, one);
    bool forward = false;
    for (const auto& unit : sharded->units()) {
      forward = !forward;
      (forward ? plan.prefetch.forward_units : plan.prefetch.backward_units)
          .push_back(unit->label());
    }
    plan.prefetch.forward = plan.prefetch.backward = 2;
  } else if (o.prefetch == "bytes") {
    plan.prefetch.forward = plan.prefetch.backward = std::numeric_limits<int64_t>::max();
    plan.prefetch.bytes = 5000;
  } else {
    plan.prefetch.forward = plan.prefetch.backward = std::stoi(o.prefetch);
  }
  return plan;
}

inline ShardPlan plan_of(const Options& o) { return plan_of(o, small_job(training_of(o))); }

}  // namespace sherd::test
