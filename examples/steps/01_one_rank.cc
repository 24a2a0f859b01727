// Step 1 of 6: a training loop on one rank. All six print the same losses.
//   bazel run -c opt //examples/steps:01_one_rank
// n parameters, f32: n values, n gradients and 2 n moments of AdamW, 16 n bytes in all.
// Next: 02_data_parallel.cc
#include "examples/steps/task.h"
#include "nn/init.h"
#include "optim/adamw.h"

using namespace steps;

int main() {
  const auto runtime = Runtime::create();
  Tape tape(runtime);
  Mlp model(tape, mlp_config());
  init_parameters(model, kSeed);
  const Batch batch = batch_of(runtime, 0, 1);

  const auto weights = parameters(model);
  std::vector<Slot> slots;  // what the optimizer updates
  for (const auto& w : weights) slots.push_back({.name = w.name, .value = w.parameter.value()});
  AdamW optimizer;

  for (int step = 0; step < kSteps; ++step) {
    const LossResult result = model.loss(tape.constant(batch.points), batch.classes);
    print_loss(step, result.loss.value().item());
    tape.backward(result.loss);

    for (size_t i = 0; i < slots.size(); ++i) slots[i].grad = weights[i].parameter.grad();
    print_memory(step, *runtime);
    // The loss is a sum over the points; its gradient is scaled to that of the mean.
    optimizer.step(slots, kLr, 1.0 / kPoints);
    for (const auto& w : weights) w.parameter.set_grad({});
  }
}
