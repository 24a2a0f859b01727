#include "nn/init.h"

#include <cmath>

#include "nn/models/gpt2.h"
#include "nn/models/mlp.h"
#include "tests/support/near.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using test::same_bits;

constexpr Gpt2Config kTiny{
    .layers = 2, .heads = 2, .channels = 64, .vocab = 97, .context = 16, .tied = false};

std::vector<double> values(const Variable& v) { return v.value().to_vector<double>(); }

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

Moments moments(const Variable& v) {
  Moments m;
  const auto all = values(v);
  for (const double x : all) m.mean += x / static_cast<double>(all.size());
  for (const double x : all) {
    m.deviation += (x - m.mean) * (x - m.mean) / static_cast<double>(all.size());
    m.largest = std::max(m.largest, std::abs(x));
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST_CASE("any rows of a parameter can be made alone, and equal the whole's") {
  const auto rt = Runtime::create();
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f64);
  for (const Init init : {Init::normal(0.02), Init::uniform(0.5), Init::ones()})
    for (const int64_t columns : {1, 3, 64}) {
      const RandomKey key = initial_key(5, "blocks.0.mlp.up.weight");
      const Tensor whole = Tensor::empty(rt, {13, columns}, dtype);
      fill_initial(whole, init, key);
      for (int64_t begin = 0; begin <= 13; ++begin)
        for (const int64_t end : {begin, std::min<int64_t>(13, begin + 3), int64_t{13}}) {
          const Tensor rows = Tensor::empty(rt, {end - begin, columns}, dtype);
          fill_initial(rows, init, key, begin);
          CHECK(
              same_bits(rows.to_vector<double>(), whole.slice(0, begin, end).to_vector<double>()));
        }
    }
  const Tensor vector = Tensor::empty(rt, {31}, dtype);
  fill_initial(vector, Init::normal(1), initial_key(5, "b"));
  const Tensor part = Tensor::empty(rt, {4}, dtype);
  fill_initial(part, Init::normal(1), initial_key(5, "b"), 7);
  CHECK(same_bits(part.to_vector<double>(), vector.slice(0, 7, 11).to_vector<double>()));
}

TEST_CASE("values depend on the seed and the name, not on the rest of the model") {
  Tape tape(Runtime::create({.threads = 2}));
  Gpt2Config config = kTiny;
  Gpt2 model(tape, config);
  config.vocab = 50;
  Gpt2 other(tape, config);
  init_parameters(model, 1);
  init_parameters(other, 1);
  CHECK(values(model.blocks[1].attn.qkv.weight) == values(other.blocks[1].attn.qkv.weight));
  CHECK(values(model.blocks[0].attn.qkv.weight) != values(model.blocks[1].attn.qkv.weight));
  init_parameters(other, 2);
  CHECK(values(model.blocks[1].attn.qkv.weight) != values(other.blocks[1].attn.qkv.weight));
}

TEST_CASE("the scheme is GPT-2's") {
  Tape tape(Runtime::create());
  Gpt2 model(tape, kTiny);
  init_parameters(model, 1);
  for (const auto& p : parameters(model)) {
    CAPTURE(p.name);
    const Moments m = moments(p.parameter);
    if (p.name.ends_with("bias")) {
      CHECK(m.largest == 0);
    } else if (p.parameter.shape().size() == 1) {
      CHECK(m.mean == 1);
      CHECK(m.deviation == 0);
    } else {
      const bool residual = p.name.ends_with("proj.weight") || p.name.ends_with("down.weight");
      const double want = residual ? 0.02 / std::sqrt(4.0) : 0.02;
      const auto n = static_cast<double>(p.parameter.value().numel());
      CHECK(std::abs(m.mean) < 4.5 * want / std::sqrt(n));
      CHECK(std::abs(m.deviation / want - 1) < 4.5 / std::sqrt(2 * n));
      CHECK(m.largest > 2.5 * want);  // it has tails
    }
  }
}

TEST_CASE("an mlp starts Kaiming uniform") {
  Tape tape(Runtime::create());
  Mlp model(tape, {.in = 24, .hidden = {50}, .out = 3});
  init_parameters(model, 1);
  const Moments m = moments(model.layers[0].weight);
  const double bound = std::sqrt(6.0 / 24);
  CHECK(m.largest <= bound);
  CHECK(m.largest > 0.98 * bound);
  CHECK(m.deviation == Approx(bound / std::sqrt(3.0)).epsilon(0.05));
  CHECK(moments(model.layers[0].bias).largest == 0);
}

TEST_CASE("a tied parameter is drawn by its first name; meta has nothing to draw") {
  Gpt2Config config = kTiny;
  Tape tape(Runtime::create());
  Gpt2 untied(tape, config);
  config.tied = true;
  Gpt2 tied(tape, config);
  init_parameters(untied, 1);
  init_parameters(tied, 1);
  CHECK(values(tied.head) == values(untied.wte.weight));
  CHECK(values(untied.head) != values(untied.wte.weight));

  Tape meta(Runtime::create({.device = kMeta}));
  Gpt2 shapes(meta, config);
  init_parameters(shapes, 1);
  CHECK(shapes.wte.weight.name() == "wte.weight");
}

}  // namespace
}  // namespace sherd
