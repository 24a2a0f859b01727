// The thin layers: what they pass to their op, and what they save.
#include <cmath>

#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/init.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "tests/support/near.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using test::near;
using Numbers = std::vector<double>;

Tensor row(const RuntimePtr& rt, const std::vector<float>& values) {
  return Tensor::from<float>(rt, {1, static_cast<int64_t>(values.size())}, values);
}

TEST_CASE("linear multiplies by the transpose and adds the bias, if any") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  Linear layer(tape, {.in = 2, .out = 3});
  layer.weight.value().copy_from(
      Tensor::from<float>(rt, {3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  layer.bias.value().copy_from(row(rt, {10, 20, 30}).view({3}));
  CHECK(layer.forward(tape.constant(row(rt, {1, -1}))).value().to_vector<double>() ==
        Numbers{9, 19, 29});
  CHECK(layer.forward(tape.constant(row(rt, {1, -1})), Activation::relu)
            .value()
            .to_vector<double>() == Numbers{11, 23, 35});
  Linear plain(tape, {.in = 2, .out = 3, .bias = false});
  CHECK(parameters(plain).size() == 1);
  plain.weight.value().fill(1);
  CHECK(plain.forward(tape.constant(row(rt, {1, 2}))).value().to_vector<double>() ==
        Numbers{3, 3, 3});
}

TEST_CASE("embedding picks rows; its gradient counts them") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  Embedding layer(tape, {.rows = 4, .channels = 2});
  name_parameters(layer);
  layer.weight.value().copy_from(
      Tensor::from<float>(rt, {4, 2}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  const Variable y =
      layer.forward(Tensor::from<int32_t>(rt, {1, 3}, std::vector<int32_t>{3, 0, 3}));
  CHECK(y.shape() == Shape{1, 3, 2});
  CHECK(y.value().to_vector<double>() == Numbers{6, 7, 0, 1, 6, 7});
  tape.backward(y, Tensor::full(rt, {1, 3, 2}, 1));
  CHECK(layer.weight.grad().to_vector<double>() == Numbers{1, 1, 0, 0, 0, 0, 2, 2});
}

TEST_CASE("layer norm uses its eps, weight and bias") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  LayerNorm layer(tape, {.channels = 2, .eps = 3});
  init_parameters(layer, 1);
  layer.bias.value().fill(0.5);
  // mean 0, variance 1: (±1) / sqrt(1 + 3) + 0.5
  CHECK(near(layer.forward(tape.constant(row(rt, {-1, 1}))).value(), Numbers{0, 1}, {0, 1e-6}));
}

TEST_CASE("dropout drops by key in training, and is x itself else") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.constant(Tensor::full(rt, {64, 64}, 3));
  const Dropout layer(0.25);
  const ForwardOptions options{.training = true, .key = RandomKey{1, 2}};
  const auto y = layer.forward(x, options).value().to_vector<double>();
  int dropped = 0;
  for (const double v : y) {
    CHECK((v == 0 || v == Approx(4)));
    dropped += v == 0;
  }
  CHECK(std::abs(dropped - 1024) < 4.5 * std::sqrt(4096 * 0.25 * 0.75));
  CHECK(layer.forward(x, options).value().to_vector<double>() == y);
  CHECK(layer.forward(x, options.at("attn")).value().to_vector<double>() != y);
  CHECK(layer.forward(x, options.at(uint64_t{1})).value().to_vector<double>() !=
        layer.forward(x, options.at(uint64_t{2})).value().to_vector<double>());
  CHECK(layer.forward(x, {}) == x);
  CHECK(Dropout(0).forward(x, options) == x);
  CHECK_THROWS_WITH(Dropout(1), Catch::Contains("[0, 1)"));
  CHECK_THROWS_WITH(Dropout(-0.1), Catch::Contains("[0, 1)"));
}

TEST_CASE("feed-forward keeps its input and the pre-activation, not the activation") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  FeedForward layer(tape, {.channels = 16, .hidden = 64});
  init_parameters(layer, 1);
  const CategoryScope scope(*rt, Category::activations);
  const Variable x = tape.leaf(Tensor::full(rt, {32, 16}, 0.5));
  const int64_t before = rt->allocator().live_bytes();
  const Variable y = layer.forward(x, {});
  CHECK(rt->allocator().live_bytes() - before == 4 * 32 * (64 + 16));
  CHECK(y.shape() == x.shape());
  tape.backward(y, Tensor::full(rt, {32, 16}, 1));
}

}  // namespace
}  // namespace sherd
