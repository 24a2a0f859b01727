// Step 2 of 6: data parallel by hand. All six print the same losses.
//   bazel run -c opt //examples/steps:02_data_parallel
// Four ranks, threads of this process, hold the same model and a quarter of the points each. Their
// gradients are summed over the ranks before the update, so all make the same update, and the
// models stay equal. Memory per rank is that of step 1; each rank receives 2 · 3/4 · 4 n bytes.
// New: run_thread_ranks, all_reduce. Next: 03_shard_optimizer.cc
#include "dist/comm/thread_ranks.h"
#include "examples/steps/task.h"
#include "nn/init.h"
#include "optim/adamw.h"

using namespace steps;

void train(Rank& rank) {
  Tape tape(rank.runtime);
  Mlp model(tape, mlp_config());
  init_parameters(model, kSeed);  // the same values on every rank
  const Batch batch = batch_of(rank.runtime, rank.rank, kRanks);

  const auto weights = parameters(model);
  std::vector<Slot> slots;
  for (const auto& w : weights) slots.push_back({.name = w.name, .value = w.parameter.value()});
  AdamW optimizer;

  for (int step = 0; step < kSteps; ++step) {
    const LossResult result = model.loss(tape.constant(batch.points), batch.classes);
    const double sum = sum_over_ranks(rank.comm, result.loss.value().item());
    if (rank.rank == 0) print_loss(step, sum);
    tape.backward(result.loss);

    std::vector<CutTensor> grads;
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i].grad = weights[i].parameter.grad();
      // Who sums which rows; all ranks have the whole sum in the end.
      const Cut cut = even_cut(1, slots[i].grad.size(0), slots[i].grad.shape().columns(1), kRanks);
      grads.push_back({{}, slots[i].grad, cut});
    }
    const Work work = rank.comm.all_reduce(std::move(grads), {}, {"all", Traffic::all_reduce});
    work.event().wait();  // it was started above, and runs on another thread

    if (rank.rank == 0) print_memory(step, *rank.runtime);
    optimizer.step(slots, kLr, 1.0 / kPoints);
    for (const auto& w : weights) w.parameter.set_grad({});
  }
}

int main() { run_thread_ranks({.ranks = kRanks}, train); }
