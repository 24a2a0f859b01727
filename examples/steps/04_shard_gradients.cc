// Step 4 of 6: gradients in parts too, by hand (ZeRO-2). All six print the same losses.
//   bazel run -c opt //examples/steps:04_shard_gradients
// Step 3 kept whole gradients until the step, though a rank needs a quarter of them. Here each one
// is reduced as soon as backward has made it, and the whole goes: at rest 4 n + 12 n / 4 bytes. The
// reduction runs beside backward, which makes the next gradient meanwhile.
// New: take_gradient, a Work in flight. Next: 05_shard_parameters.cc
#include "dist/comm/thread_ranks.h"
#include "examples/steps/task.h"
#include "nn/init.h"
#include "optim/adamw.h"

using namespace steps;

void train(Rank& rank) {
  Tape tape(rank.runtime);
  Mlp model(tape, mlp_config());
  init_parameters(model, kSeed);
  const Batch batch = batch_of(rank.runtime, rank.rank, kRanks);

  const auto weights = parameters(model);
  std::vector<Cut> cuts;
  std::vector<Slot> slots;
  Work reduction;  // one in flight: a second whole gradient waits for it
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor& value = weights[i].parameter.value();
    const Cut cut = even_cut(1, value.size(0), value.shape().columns(1), kRanks);
    cuts.push_back(cut);
    slots.push_back({.name = weights[i].name,
                     .value = value.slice(0, cut.begin(rank.rank), cut.begin(rank.rank + 1))});
    // The tape gives a gradient away when the last use of its parameter has been passed.
    weights[i].parameter.state().take_gradient = [&, i](Tensor whole) {
      const CategoryScope scope(*rank.runtime, Category::grads);
      slots[i].grad = Tensor::empty_like(slots[i].value);
      reduction.event().wait();
      reduction = rank.comm.reduce_scatter({{slots[i].grad, std::move(whole), cuts[i]}}, {},
                                           {weights[i].name, Traffic::reduce_scatter});
    };
  }
  AdamW optimizer;

  for (int step = 0; step < kSteps; ++step) {
    const LossResult result = model.loss(tape.constant(batch.points), batch.classes);
    const double sum = sum_over_ranks(rank.comm, result.loss.value().item());
    if (rank.rank == 0) print_loss(step, sum);
    tape.backward(result.loss);
    reduction.event().wait();
    reduction = {};  // with the last whole gradient

    if (rank.rank == 0) print_memory(step, *rank.runtime);
    optimizer.step(slots, kLr, 1.0 / kPoints);
    std::vector<CutTensor> values;
    for (size_t i = 0; i < slots.size(); ++i) {
      values.push_back({slots[i].value, weights[i].parameter.value(), cuts[i]});
      slots[i].grad = {};
    }
    rank.comm.all_gather(std::move(values), {"all", Traffic::all_gather}).event().wait();
  }
}

int main() { run_thread_ranks({.ranks = kRanks}, train); }
