// Trains a sharded MLP over a transport of one's own, in which each collective begins late: with
// and without gathering ahead, to see what of the delay is hidden behind computation.
//   bazel run -c opt //examples/own_transport
#include <cstdio>

#include "base/error.h"
#include "base/progress.h"
#include "dist/comm/thread_ranks.h"
#include "dist/fully_shard.h"
#include "dist/tree_fold.h"
#include "examples/own_transport/late_comm.h"
#include "nn/models/mlp.h"
#include "optim/adamw.h"
#include "tensor/random.h"
#include "train/sharded_slots.h"

using namespace sherd;

constexpr int kRanks = 2, kSteps = 20;
constexpr int64_t kPoints = 512;  // of a rank

/// One training; returns its losses.
std::vector<double> train(int64_t prefetch, double delay_s) {
  std::vector<double> losses;
  run_thread_ranks({.ranks = kRanks}, [&](Rank& rank) {
    LateComm comm(rank.comm, delay_s);
    Tape tape(rank.runtime);
    Mlp model(tape, {.in = 16, .hidden = {512, 512, 512}, .out = 4});
    DeviceMesh mesh(comm);  // the only place that is told of it
    ShardPlan plan;
    plan.prefetch.forward = plan.prefetch.backward = prefetch;
    const auto sharded = fully_shard(model, tape, mesh, plan);
    sharded->init(/*seed=*/1);
    ShardedSlots slots(*sharded);
    AdamW optimizer;

    const Tensor points = Tensor::empty(rank.runtime, {kPoints, 16});
    fill_normal(points, RandomKey{1, 0}.derive(static_cast<uint64_t>(rank.rank)), 0, 1);
    std::vector<int32_t> quadrants;
    for (int64_t i = 0; i < kPoints; ++i)
      quadrants.push_back((points.data<float>()[i * 16] > 0 ? 1 : 0) +
                          (points.data<float>()[i * 16 + 1] > 0 ? 2 : 0));
    const Tensor classes = Tensor::from<int32_t>(rank.runtime, {kPoints}, quadrants);
    const double begin_s = steady_seconds();
    for (int step = 0; step < kSteps; ++step) {
      const LossResult result = model.loss(tape.constant(points), classes);
      const double sum = sum_over_ranks(comm, result.loss.value().item());
      if (rank.rank == 0) losses.push_back(sum / (kRanks * kPoints));
      tape.backward(result.loss);
      slots.finish_gradients();
      slots.step(optimizer, 0.001, 1.0 / (kRanks * kPoints));
    }
    if (rank.rank != 0) return;
    std::printf("prefetch %lld, %.0f ms late: %.1f ms a step, of which rank 0 waited %.1f\n",
                static_cast<long long>(prefetch), delay_s * 1e3,
                (steady_seconds() - begin_s) * 1e3 / kSteps,
                sharded->take_counters().exposed_s * 1e3 / kSteps);
    if (prefetch > 0 && delay_s > 0)
      for (const auto& [call, count] : comm.counts())
        std::printf("  %3d × %s\n", count, call.c_str());
  });
  return losses;
}

int main() try {
  const auto losses = train(0, 0);
  for (const int64_t prefetch : {0, 1})
    if (train(prefetch, 0.002) != losses) {
      std::printf("a transport changed the losses\n");
      return 1;
    }
  for (int step : {0, kSteps / 2, kSteps - 1})
    std::printf("step %2d  loss %.4f\n", step, losses[static_cast<size_t>(step)]);
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
