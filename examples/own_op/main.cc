// Checks an op of one's own against finite differences, then learns a sine with it.
//   bazel run //examples/own_op
#include <cmath>
#include <cstdio>
#include <numbers>

#include "autograd/gradcheck.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/reduce.h"
#include "examples/own_op/snake.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "optim/adamw.h"

using namespace sherd;

/// y = out(snake(in(x)))
struct Periodic : Module {
  Linear in, out;
  Parameter a;
  explicit Periodic(Tape& tape)
      : in(tape, {.in = 1, .out = 32}),
        out(tape, {.in = 32, .out = 1}),
        a(tape, {32}, DType::f32, Init::ones()) {}
  void fields(ModuleVisitor& visit) override {
    visit("in", in);
    visit("a", a);
    visit("out", out);
  }
  Variable forward(const Variable& x) const { return out.forward(snake(in.forward(x), a)); }
};

int main() {
  const auto runtime = Runtime::create();
  Tape tape(runtime);

  const auto x = Tensor::empty(runtime, {5, 3}, DType::f64);
  fill_initial(x, Init::normal(1), initial_key(1, "x"));
  const auto a = Tensor::from<double>(runtime, {3}, std::vector<double>{0.5, 1, 2});
  const auto report =
      gradcheck(tape, [](const std::vector<Variable>& in) { return snake(in[0], in[1]); }, {x, a});
  std::printf("gradcheck: %s, worst error %.2g of what is allowed\n",
              report.ok ? "passed" : "FAILED", report.worst);
  if (!report.ok) return 1;

  Periodic model(tape);
  init_parameters(model, 1);
  const auto weights = parameters(model);
  std::vector<Slot> slots;
  for (const auto& w : weights) slots.push_back({.name = w.name, .value = w.parameter.value()});
  AdamW optimizer;
  std::vector<float> inputs, wanted;
  for (int i = 0; i < 256; ++i) {
    inputs.push_back(static_cast<float>(i - 128) / 16);
    wanted.push_back(std::sin(inputs.back() * std::numbers::pi_v<float> / 2));
  }
  const auto xs = tape.constant(Tensor::from<float>(runtime, {256, 1}, inputs));
  const auto ys = tape.constant(Tensor::from<float>(runtime, {256, 1}, wanted));
  for (int step = 0; step <= 1000; ++step) {
    const auto error = sub(model.forward(xs), ys);
    const auto loss = mean(mul(error, error));
    if (step % 200 == 0) std::printf("step %4d  loss %.5f\n", step, loss.value().item());
    tape.backward(loss);
    for (size_t i = 0; i < slots.size(); ++i) slots[i].grad = weights[i].parameter.grad();
    optimizer.step(slots, /*lr=*/0.01);
    for (const auto& w : weights) w.parameter.set_grad({});
  }
}
