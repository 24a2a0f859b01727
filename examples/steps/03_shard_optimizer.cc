// Step 3 of 6: the optimizer in parts, by hand (ZeRO-1). All six print the same losses.
//   bazel run -c opt //examples/steps:03_shard_optimizer
// All ranks of step 2 made the same update. Here each one updates a quarter of each parameter's
// rows, so it needs the sums of those rows' gradients only (reduce_scatter) and the moments of
// those rows only; then the ranks give each other their rows (all_gather). Memory: 8 n + 8 n / 4
// bytes. An all-reduce is a reduce-scatter and an all-gather, so as many bytes travel as before.
// New: reduce_scatter, all_gather. Next: 04_shard_gradients.cc
#include "dist/comm/thread_ranks.h"
#include "examples/steps/task.h"
#include "nn/init.h"
#include "optim/adamw.h"

using namespace steps;

/// This rank's rows, a view.
Tensor rows_of(const Tensor& whole, const Cut& cut, int rank) {
  return whole.slice(0, cut.begin(rank), cut.begin(rank + 1));
}

void train(Rank& rank) {
  Tape tape(rank.runtime);
  Mlp model(tape, mlp_config());
  init_parameters(model, kSeed);
  const Batch batch = batch_of(rank.runtime, rank.rank, kRanks);

  const auto weights = parameters(model);
  std::vector<Cut> cuts;
  std::vector<Slot> slots;  // of rows: the optimizer cannot tell
  for (const auto& w : weights) {
    const Tensor& value = w.parameter.value();
    cuts.push_back(even_cut(1, value.size(0), value.shape().columns(1), kRanks));
    slots.push_back({.name = w.name, .value = rows_of(value, cuts.back(), rank.rank)});
  }
  AdamW optimizer;

  for (int step = 0; step < kSteps; ++step) {
    const LossResult result = model.loss(tape.constant(batch.points), batch.classes);
    const double sum = sum_over_ranks(rank.comm, result.loss.value().item());
    if (rank.rank == 0) print_loss(step, sum);
    tape.backward(result.loss);

    std::vector<CutTensor> grads, values;
    for (size_t i = 0; i < slots.size(); ++i) {
      const Tensor& grad = weights[i].parameter.grad();
      slots[i].grad = rows_of(grad, cuts[i], rank.rank);  // the sum comes to lie in the whole
      grads.push_back({slots[i].grad, grad, cuts[i]});
      values.push_back({slots[i].value, weights[i].parameter.value(), cuts[i]});
    }
    rank.comm.reduce_scatter(std::move(grads), {}, {"all", Traffic::reduce_scatter}).event().wait();

    if (rank.rank == 0) print_memory(step, *rank.runtime);
    optimizer.step(slots, kLr, 1.0 / kPoints);
    rank.comm.all_gather(std::move(values), {"all", Traffic::all_gather}).event().wait();
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i].grad = {};
      weights[i].parameter.set_grad({});
    }
  }
}

int main() { run_thread_ranks({.ranks = kRanks}, train); }
