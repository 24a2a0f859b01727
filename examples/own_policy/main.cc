// A sharding plan of one's own: which parameters travel together, and along which dim each is cut.
//   bazel run -c opt //examples/own_policy
// Prints the units, then the losses; the default plan gives the same ones, bit for bit.
#include <cstdio>

#include "base/error.h"
#include "dist/comm/thread_ranks.h"
#include "dist/fully_shard.h"
#include "dist/tree_fold.h"
#include "nn/models/gpt2.h"
#include "optim/adamw.h"
#include "train/sharded_slots.h"

using namespace sherd;

constexpr int kRanks = 4, kSteps = 20;

/// Blocks travel in pairs; each table alone; the rest is the root, which stays gathered from its
/// first use in forward to its last in backward.
std::string unit_of(const NamedParameter& p) {
  const std::string block = unit_by_block(p);
  if (!block.empty()) return "pair." + std::to_string(std::stoi(block.substr(7)) / 2);
  return p.name.starts_with("w") ? p.name : "";
}

/// The losses of a few steps on a text of which the next byte can be told.
std::vector<double> train(const ShardPlan& plan, bool print) {
  std::vector<double> losses;
  run_thread_ranks({.ranks = kRanks}, [&](Rank& rank) {
    Tape tape(rank.runtime);
    Gpt2 model(tape, {.layers = 4, .heads = 2, .channels = 32, .vocab = 16, .context = 16});
    DeviceMesh mesh(rank.comm);
    const auto sharded = fully_shard(model, tape, mesh, plan);
    sharded->init(/*seed=*/1);
    if (print && rank.rank == 0)
      for (const auto& unit : sharded->units())
        std::printf("unit %-10s %2zu parameters, %6lld bytes when gathered\n",
                    unit->label().c_str(), unit->parameters.size(),
                    static_cast<long long>(unit->gathered_bytes));
    ShardedSlots slots(*sharded);
    AdamW optimizer;

    const int64_t T = 16;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<int32_t> text;
      for (int32_t t = 0; t <= T; ++t) text.push_back((3 * t + 5 * rank.rank + step) % 16);
      const Tensor all = Tensor::from<int32_t>(rank.runtime, {1, T + 1}, text);
      const LossResult result =
          model.loss(all.slice(1, 0, T).contiguous(), all.slice(1, 1, T + 1).contiguous());
      const double sum = sum_over_ranks(rank.comm, result.loss.value().item());
      if (rank.rank == 0) losses.push_back(sum / (kRanks * T));
      tape.backward(result.loss);
      slots.finish_gradients();
      slots.step(optimizer, 0.01, 1.0 / (kRanks * T));
    }
  });
  return losses;
}

int main() try {
  ShardPlan plan;
  plan.unit_of = unit_of;
  plan.placements = {{.match = "*.mlp.down.weight", .dim = 1}};  // by columns; all else by rows
  plan.prefetch.backward = 2;                                    // units ahead
  const auto losses = train(plan, true);
  for (int step : {0, kSteps / 2, kSteps - 1})
    std::printf("step %2d  loss %.4f\n", step, losses[static_cast<size_t>(step)]);
  if (losses != train(ShardPlan{}, false)) {
    std::printf("the default plan gives other losses\n");
    return 1;
  }
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
