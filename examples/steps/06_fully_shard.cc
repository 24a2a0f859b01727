// Step 6 of 6: what step 5 did by hand, by fully_shard. All six print the same losses.
//   bazel run -c opt //examples/steps:06_fully_shard [STRATEGY]      ddp, zero1, zero2, fsdp, …
// The loop is that of one rank again. fully_shard is told of each use of a parameter's bytes, so it
// gathers, releases and reduces by itself, a unit ahead of the computation. To stderr go the
// collectives of the last step: when each one began and ended, and the bytes that rank 0 received.
// New: DeviceMesh, ShardPlan, fully_shard, ShardedSlots. Next: examples/custom_loop_sharded,
// docs/sharding.md
#include "base/progress.h"
#include "dist/comm/thread_ranks.h"
#include "dist/fully_shard.h"
#include "examples/steps/task.h"
#include "optim/adamw.h"
#include "train/sharded_slots.h"

using namespace steps;

void train(Rank& rank, const ShardPlan& plan) {
  Tape tape(rank.runtime);
  const DeferParameters without_bytes(*rank.runtime);
  Mlp model(tape, mlp_config());
  DeviceMesh mesh(rank.comm, plan.replicas);
  const auto sharded = fully_shard(model, tape, mesh, plan);
  sharded->init(kSeed);  // each rank makes its own rows
  const Batch batch = batch_of(rank.runtime, rank.rank, kRanks);

  ShardedSlots slots(*sharded);  // of this rank's rows
  AdamW optimizer;

  for (int step = 0; step < kSteps; ++step) {
    if (rank.rank == 0 && step + 1 == kSteps)
      rank.comm.set_observer([begin_s = steady_seconds()](const CommSpan& span) {
        std::fprintf(stderr, "%7.3f to %7.3f ms  %-14s %-9s %6lld bytes\n",
                     1e3 * (span.begin_s - begin_s), 1e3 * (span.end_s - begin_s), span.op,
                     span.unit.c_str(), static_cast<long long>(span.bytes));
      });
    const LossResult result = model.loss(tape.constant(batch.points), batch.classes);
    const double sum = sum_over_ranks(rank.comm, result.loss.value().item());
    if (rank.rank == 0) print_loss(step, sum);
    tape.backward(result.loss);
    slots.finish_gradients();

    if (rank.rank == 0) print_memory(step, *rank.runtime);
    slots.step(optimizer, kLr, 1.0 / kPoints);
  }
}

int main(int argc, char** argv) try {
  const ShardPlan plan = parse_strategy(argc > 1 ? argv[1] : "fsdp", kRanks);
  run_thread_ranks({.ranks = kRanks}, [&](Rank& rank) { train(rank, plan); });
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
