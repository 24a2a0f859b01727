// The smallest whole training: points on three spirals, told apart by an MLP with AdamW.
//   bazel run //examples/mlp
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "nn/init.h"
#include "nn/models/mlp.h"
#include "optim/adamw.h"

using namespace sherd;

constexpr int kArms = 3, kPoints = 100;

struct Data {
  Tensor points;   ///< [kArms · kPoints, 2]
  Tensor classes;  ///< [kArms · kPoints] i32
};

/// Arm k turns from angle 2πk/3 by one and a quarter turns while it grows to radius 1.
Data spirals(const RuntimePtr& runtime) {
  std::vector<float> points;
  std::vector<int32_t> classes;
  for (int arm = 0; arm < kArms; ++arm)
    for (int i = 0; i < kPoints; ++i) {
      const float r = static_cast<float>(i + 1) / kPoints;
      const float angle = 2.0944f * static_cast<float>(arm) + 7.854f * r;
      points.push_back(r * std::cos(angle));
      points.push_back(r * std::sin(angle));
      classes.push_back(arm);
    }
  return {Tensor::from<float>(runtime, {kArms * kPoints, 2}, points),
          Tensor::from<int32_t>(runtime, {kArms * kPoints}, classes)};
}

/// Share of the points whose largest logit is that of their class.
double accuracy(const Tensor& logits, const Tensor& classes) {
  const auto values = logits.to_vector<float>();
  const auto wanted = classes.to_vector<int32_t>();
  int right = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const float* row = &values[i * kArms];
    right += std::max_element(row, row + kArms) - row == wanted[i];
  }
  return static_cast<double>(right) / static_cast<double>(wanted.size());
}

int main() {
  const auto runtime = Runtime::create();
  const Data data = spirals(runtime);

  Tape tape(runtime);
  Mlp model(tape, {.in = 2, .hidden = {64, 64}, .out = kArms});
  init_parameters(model, /*seed=*/1);
  std::printf("%lld parameters\n", static_cast<long long>(count_parameters(model).total));

  const auto weights = parameters(model);
  std::vector<Slot> slots;  // what the optimizer updates
  for (const auto& w : weights) slots.push_back({.name = w.name, .value = w.parameter.value()});
  AdamW optimizer;

  for (int step = 0; step <= 300; ++step) {
    const LossResult result = model.loss(tape.constant(data.points), data.classes);
    const auto points = static_cast<double>(result.tokens);
    if (step % 50 == 0)
      std::printf("step %3d  loss %.4f\n", step, result.loss.value().item() / points);
    tape.backward(result.loss);

    for (size_t i = 0; i < slots.size(); ++i) slots[i].grad = weights[i].parameter.grad();
    // The loss is a sum over the points; its gradient is scaled to that of the mean.
    optimizer.step(slots, /*lr=*/0.005, /*grad_scale=*/1 / points);
    for (const auto& w : weights) w.parameter.set_grad({});
  }
  const NoGrad no_grad(tape);
  std::printf("accuracy %.3f\n",
              accuracy(model.forward(tape.constant(data.points)).value(), data.classes));
}
