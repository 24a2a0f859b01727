#include "nn/models/mlp.h"

#include <cmath>

#include "nn/init.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("an mlp is its layers, one activation between two") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  Mlp model(tape, {.in = 2, .hidden = {3, 1}, .out = 2, .activation = Activation::relu});
  std::vector<std::string> names;
  for (const auto& p : parameters(model)) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                          "layers.1.bias", "layers.2.weight", "layers.2.bias"});
  CHECK(count_parameters(model).total == 9 + 4 + 4);
  for (const auto& p : parameters(model)) p.parameter.value().fill(0);
  // Layer 0 passes x and −x; layer 1 adds their positive parts: |x|; layer 2 gives ±|x|.
  model.layers[0].weight.value().slice(0, 0, 1).slice(1, 0, 1).fill(1);
  model.layers[0].weight.value().slice(0, 1, 2).slice(1, 0, 1).fill(-1);
  model.layers[1].weight.value().fill(1);
  model.layers[2].weight.value().slice(0, 0, 1).fill(1);
  model.layers[2].weight.value().slice(0, 1, 2).fill(-1);
  const Tensor x = Tensor::from<float>(rt, {2, 2}, std::vector<float>{-3, 7, 5, 7});
  CHECK(model.forward(tape.constant(x)).value().to_vector<double>() ==
        std::vector<double>{3, -3, 5, -5});

  const Tensor classes = Tensor::from<int32_t>(rt, {2}, std::vector<int32_t>{0, -1});
  const auto result = model.loss(tape.constant(x), classes);
  CHECK(result.tokens == 1);
  CHECK(result.loss.value().item() == Approx(std::log1p(std::exp(-6.0))).margin(1e-6));
}

TEST_CASE("gradients of an mlp agree with differences") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Activation activation = GENERATE(Activation::tanh, Activation::gelu_erf, Activation::silu);
  Mlp model(tape,
            {.in = 3, .hidden = {5, 4}, .out = 2, .activation = activation, .dtype = DType::f64});
  init_parameters(model, 1);
  const Tensor x = Tensor::empty(rt, {7, 3}, DType::f64);
  fill_initial(x, Init::normal(1), initial_key(2, "x"));
  const Tensor classes = Tensor::from<int32_t>(rt, {7}, std::vector<int32_t>{0, 1, 1, 0, 1, 0, 1});
  const auto loss = [&] { return model.loss(tape.constant(x), classes).loss; };
  tape.backward(loss());
  const NoGrad no_grad(tape);
  for (const auto& p : parameters(model)) {
    CAPTURE(p.name);
    const auto grad = p.parameter.grad().to_vector<double>();
    double* values = p.parameter.value().data<double>();
    for (size_t i = 0; i < grad.size(); ++i) {
      const double start = values[i], h = 1e-5;
      values[i] = start + h;
      const double above = loss().value().item();
      values[i] = start - h;
      const double below = loss().value().item();
      values[i] = start;
      CHECK((above - below) / (2 * h) == Approx(grad[i]).epsilon(1e-6).margin(1e-8));
    }
  }
}

TEST_CASE("no hidden layers is one linear layer; widths that are not positive are refused") {
  Tape tape(Runtime::create());
  Mlp flat(tape, {.in = 4, .hidden = {}, .out = 3});
  CHECK(count_parameters(flat).total == 15);
  const auto make = [&](const MlpConfig& config) { const Mlp model(tape, config); };
  CHECK_THROWS_WITH(make({.in = 0, .hidden = {}, .out = 3}), Catch::Contains("positive"));
  CHECK_THROWS_WITH(make({.in = 2, .hidden = {0}, .out = 3}), Catch::Contains("hidden"));
}

}  // namespace
}  // namespace sherd
