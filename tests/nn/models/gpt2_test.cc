#include "nn/models/gpt2.h"

#include <chrono>
#include <cmath>

#include "autograd/ops/arithmetic.h"
#include "nn/init.h"
#include "tests/support/golden.h"
#include "tests/support/near.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using test::near;
using test::same_bits;

constexpr Gpt2Config kSmall{
    .layers = 2, .heads = 3, .channels = 24, .vocab = 37, .context = 11, .dropout = 0.1};

/// A model on its own runtime; every byte that forward and backward make counts as activations.
struct Bench {
  RuntimePtr runtime;
  Tape tape;
  Gpt2 model;
  CategoryScope scope;

  explicit Bench(const Gpt2Config& config, const RuntimeOptions& options = {})
      : runtime(Runtime::create(options)),
        tape(runtime),
        model(tape, config),
        scope(*runtime, Category::activations) {
    init_parameters(model, 7);
  }

  Tensor tokens(int64_t B, int64_t T, int64_t seed) const {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < B * T; ++i)
      values.push_back(static_cast<int32_t>((i * i * 31 + i * 7 + seed) % model.config.vocab));
    return Tensor::from<int32_t>(runtime, {B, T}, values);
  }

  LossResult loss(int64_t B = 2, int64_t T = 9) const {
    return model.loss(tokens(B, T, 1), tokens(B, T, 5), {.training = true, .key = RandomKey{3, 4}});
  }

  std::vector<double> gradients() {
    std::vector<double> all;
    for (const auto& p : parameters(model)) {
      REQUIRE(p.parameter.grad());
      const auto g = p.parameter.grad().to_vector<double>();
      all.insert(all.end(), g.begin(), g.end());
      p.parameter.set_grad({});
    }
    return all;
  }
};

double norm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

TEST_CASE("gpt2 has the names and the size of the original") {
  Bench bench(gpt2_preset("gpt2"), {.device = kMeta});
  CHECK(count_parameters(bench.model).total == 124'439'808);
  const auto all = parameters(bench.model);
  CHECK(all.size() == 2 + 12 * 12 + 2);
  CHECK(all[0].name == "wte.weight");
  CHECK(all[0].aliases == std::vector<std::string>{"head.weight"});
  CHECK(all[1].name == "wpe.weight");
  std::vector<std::string> block;
  for (size_t i = 14; i < 26; ++i) block.push_back(all[i].name);
  CHECK(block == std::vector<std::string>{"blocks.1.ln1.weight", "blocks.1.ln1.bias",
                                          "blocks.1.attn.qkv.weight", "blocks.1.attn.qkv.bias",
                                          "blocks.1.attn.proj.weight", "blocks.1.attn.proj.bias",
                                          "blocks.1.ln2.weight", "blocks.1.ln2.bias",
                                          "blocks.1.mlp.up.weight", "blocks.1.mlp.up.bias",
                                          "blocks.1.mlp.down.weight", "blocks.1.mlp.down.bias"});
  CHECK(all.back().name == "lnf.bias");

  const auto size = [](const char* preset) {
    Bench other(gpt2_preset(preset), {.device = kMeta});
    return count_parameters(other.model).total;
  };
  CHECK(size("gpt2-medium") == 354'823'168);
  CHECK(size("gpt2-large") == 774'030'080);
  CHECK(size("gpt2-xl") == 1'557'611'200);
}

TEST_CASE("an untied head is a parameter of its own") {
  Gpt2Config config = kSmall;
  Bench tied(config);
  config.tied = false;
  Bench untied(config);
  CHECK(count_parameters(untied.model).total ==
        count_parameters(tied.model).total + config.vocab * config.channels);
  CHECK(parameters(untied.model).back().name == "head.weight");
  untied.tape.backward(untied.loss().loss);
  tied.tape.backward(tied.loss().loss);
  // The table alone learns only from the tokens that occur; tied, from the head too.
  const Tensor alone = untied.model.wte.weight.grad();
  CHECK(untied.model.head.grad().shape() == alone.shape());
  CHECK(norm(alone.to_vector<double>()) != norm(tied.model.head.grad().to_vector<double>()));
}

TEST_CASE("loss and every gradient of a whole GPT agree with PyTorch in f64") {
  const test::Golden golden("gpt2_small");
  for (const int threads : {1, 2}) {
    Bench bench({.layers = 4, .heads = 4, .channels = 64, .vocab = 96, .context = 48},
                {.threads = threads});
    const auto all = parameters(bench.model);
    for (const auto& p : all) p.parameter.value().copy_from(golden.tensor(bench.runtime, p.name));
    const auto result = bench.model.loss(golden.tensor(bench.runtime, "in.tokens"),
                                         golden.tensor(bench.runtime, "in.targets"));
    CHECK(result.tokens == 3 * 48);
    CHECK(near(result.loss.value(), golden.values("out.loss_sum"), {1e-6, 0}));
    bench.tape.backward(result.loss,
                        Tensor::full(bench.runtime, {}, 1.0 / static_cast<double>(result.tokens)));

    double global = 0;
    for (const auto& p : all) global += std::pow(norm(golden.values("grad." + p.name)), 2);
    global = std::sqrt(global);
    for (const auto& p : all) {
      CAPTURE(p.name);
      const auto want = golden.values("grad." + p.name);
      auto error = p.parameter.grad().to_vector<double>();
      REQUIRE(error.size() == want.size());
      for (size_t i = 0; i < want.size(); ++i) error[i] -= want[i];
      // A gradient that is all cancellation (the key bias) is judged by the size of the whole.
      const double size = norm(want) < 1e-6 * global ? global : norm(want);
      CHECK(norm(error) <= 1e-5 * size);
    }
  }
}

TEST_CASE("f64 directional derivatives of a whole GPT agree with differences to 1e-6") {
  Gpt2Config config = kSmall;
  config.dtype = DType::f64;
  config.tied = GENERATE(true, false);
  Bench bench(config);
  const auto all = parameters(bench.model);
  bench.tape.backward(bench.loss().loss);

  for (uint64_t direction = 0; direction < 3; ++direction) {
    const double h = 1e-6;  // of directions as long as √(number of parameters)
    double expected = 0;
    std::vector<Tensor> start, step;
    for (const auto& p : all) {
      const Tensor value = p.parameter.value().clone();
      const Tensor d = Tensor::empty_like(value);
      fill_initial(d, Init::uniform(1), RandomKey{11, direction}.derive(p.name), 0);
      const auto g = p.parameter.grad().to_vector<double>();
      const auto along = d.to_vector<double>();
      for (size_t i = 0; i < g.size(); ++i) expected += g[i] * along[i];
      start.push_back(value);
      step.push_back(d);
    }
    const auto loss_at = [&](double t) {
      const NoGrad no_grad(bench.tape);
      for (size_t i = 0; i < all.size(); ++i) {
        const Variable moved =
            add(bench.tape.constant(start[i]), scale(bench.tape.constant(step[i]), t));
        all[i].parameter.value().copy_from(moved.value());
      }
      return bench.loss().loss.value().item();
    };
    const double difference = (loss_at(h) - loss_at(-h)) / (2 * h);
    loss_at(0);
    CHECK(difference == Approx(expected).epsilon(1e-6).margin(0));
  }
}

TEST_CASE("recompute gives the same bits and a lower peak") {
  struct Result {
    double loss;
    std::vector<double> gradients;
    int64_t peak;
  };
  const auto run = [](Recompute recompute) {
    Gpt2Config config = kSmall;
    config.layers = 6;
    config.recompute = recompute;
    Bench bench(config);
    bench.runtime->allocator().reset_peak();
    const auto result = bench.loss(8, 11);
    bench.tape.backward(result.loss);
    return Result{
        result.loss.value().item(), bench.gradients(),
        bench.runtime->allocator().peak().by_category[static_cast<size_t>(Category::activations)]};
  };
  const Result kept = run(Recompute::none), again = run(Recompute::block);
  CHECK(kept.loss == again.loss);
  CHECK(same_bits(again.gradients, kept.gradients));
  CHECK(2 * again.peak < kept.peak);  // of activations: six blocks' against one's and its input
}

TEST_CASE("dropout is a function of the key alone, and of training") {
  Bench bench(kSmall);
  const Tensor tokens = bench.tokens(2, 9, 1), targets = bench.tokens(2, 9, 5);
  const auto loss = [&](bool training, RandomKey key) {
    return bench.model.loss(tokens, targets, {.training = training, .key = key})
        .loss.value()
        .item();
  };
  const double first = loss(true, {3, 4});
  CHECK(loss(true, {3, 4}) == first);
  CHECK(loss(true, {3, 5}) != first);
  CHECK(loss(true, {4, 4}) != first);
  CHECK(loss(false, {3, 4}) == loss(false, {3, 5}));
  CHECK(loss(false, {3, 4}) != first);
}

TEST_CASE("a loss repeats bit for bit, with any number of threads") {
  const auto run = [](int threads) {
    Bench bench(kSmall, {.threads = threads});
    bench.tape.backward(bench.loss(3, 11).loss);
    return bench.gradients();
  };
  const auto one = run(1);
  CHECK(same_bits(run(1), one));
  CHECK(same_bits(run(2), one));
  CHECK(same_bits(run(3), one));
}

TEST_CASE("meta predicts the bytes of a step exactly") {
  struct Bytes {
    CategoryBytes built, forward, after, peak;
    std::vector<std::string> where;
  };
  const auto run = [](Device device, const Gpt2Config& config) {
    Bench bench(config, {.device = device});
    Allocator& memory = bench.runtime->allocator();
    Bytes bytes;
    bytes.built = memory.live_by_category();
    memory.reset_peak();
    {
      const auto result = bench.loss();
      bytes.forward = memory.live_by_category();
      bench.tape.backward(result.loss);
    }
    bytes.after = memory.live_by_category();
    bytes.peak = memory.peak().by_category;
    bytes.where = memory.peak().where;
    return bytes;
  };
  for (const Recompute recompute : {Recompute::none, Recompute::block})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Gpt2Config config = kSmall;
      config.recompute = recompute;
      config.dtype = dtype;
      CAPTURE(dtype, static_cast<int>(recompute));
      const Bytes real = run(kCpu, config), predicted = run(kMeta, config);
      CHECK(predicted.built == real.built);
      CHECK(predicted.forward == real.forward);
      CHECK(predicted.after == real.after);
      CHECK(predicted.peak == real.peak);
      CHECK(predicted.where == real.where);
      CHECK(real.built[static_cast<size_t>(Category::params)] > 0);
      CHECK(real.forward[static_cast<size_t>(Category::activations)] > 0);
      CHECK(real.after[static_cast<size_t>(Category::activations)] == 0);
      CHECK(real.after[static_cast<size_t>(Category::grads)] >=
            real.built[static_cast<size_t>(Category::params)]);
    }
}

TEST_CASE("a step of 124M on meta takes no memory and little time") {
  const auto begin = std::chrono::steady_clock::now();
  Bench bench(gpt2_preset("gpt2"), {.device = kMeta});
  bench.tape.backward(bench.loss(8, 1024).loss);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() < 1);
  CHECK(bench.runtime->allocator().live_by_category()[static_cast<size_t>(Category::grads)] >=
        4 * int64_t{124'439'808});
}

TEST_CASE("a block keeps 12 channels a token, and statistics") {
  const auto kept = [](int64_t layers) {
    Bench bench({.layers = layers, .heads = 2, .channels = 32, .vocab = 37, .context = 8});
    const auto result = bench.loss(2, 8);
    return bench.runtime->allocator()
        .live_by_category()[static_cast<size_t>(Category::activations)];
  };
  // The input, ln1's output, q, k, v, attention's output, the middle, ln2's output, and the 4 of
  // the feed-forward layer before its activation; mean and 1/deviation of two norms, and a
  // log-sum-exp a head.
  CHECK(kept(3) - kept(2) == 4 * (2 * 8) * (12 * 32 + 4 + 2));
}

TEST_CASE("the peak and errors name the block and the op") {
  Gpt2Config config = kSmall;
  config.hidden = 2000;
  Bench bench(config);
  {
    // Nothing is kept, so the peak is where a block is at its widest.
    const NoGrad no_grad(bench.tape);
    bench.runtime->allocator().reset_peak();
    bench.loss();
    CHECK(bench.runtime->allocator().peak().where ==
          std::vector<std::string>{"blocks.0", "mlp", "linear"});
  }
  bench.model.blocks[1].mlp.down.weight.set_value(Tensor::zeros(bench.runtime, {24, 95}));
  CHECK_THROWS_WITH(bench.loss(), Catch::Contains("blocks.1: mlp: linear"));
}

TEST_CASE("a frozen table gets no gradient, and the rest get the same") {
  Gpt2Config config = kSmall;
  Bench free(config);
  config.recompute = GENERATE(Recompute::none, Recompute::block);
  Bench part(config);
  free.tape.backward(free.loss().loss);
  CHECK(freeze(part.model, "wte.*") == 1);
  CHECK(freeze(part.model, "blocks.0.*") == 12);
  CHECK(freeze(part.model, "blocks.1.attn.*.bias") == 2);
  part.tape.backward(part.loss().loss);
  const auto want = parameters(free.model), got = parameters(part.model);
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(got[i].name);
    if (got[i].parameter.frozen()) {
      CHECK(!got[i].parameter.grad());
    } else {
      CHECK(same_bits(got[i].parameter.grad().to_vector<double>(),
                      want[i].parameter.grad().to_vector<double>()));
    }
  }
  CHECK(!part.model.head.grad());
}

TEST_CASE("logits from the cache equal those of the whole sequence") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  Gpt2Config config = kSmall;
  config.dtype = dtype;
  Bench bench(config);
  const NoGrad no_grad(bench.tape);
  const int64_t B = 2, T = config.context;
  const Tensor tokens = bench.tokens(B, T, 3);
  const Tensor whole = bench.model.logits(tokens).value();
  CHECK(whole.shape() == Shape{B, T, config.vocab});

  // A prompt of 4, one of 2 after it, then token by token.
  KvCache cache = bench.model.make_cache(B);
  int64_t begin = 0;
  for (const int64_t length : {4, 2, 1, 1, 1, 1, 1}) {
    const Tensor part =
        bench.model.logits(tokens.slice(1, begin, begin + length).contiguous(), &cache).value();
    CHECK(near(part, whole.slice(1, begin, begin + length), {1e-5, 1e-6}));
    begin += length;
    CHECK(cache.length() == begin);
  }
  CHECK_THROWS_WITH(bench.model.logits(tokens.slice(1, 0, 1).contiguous(), &cache),
                    Catch::Contains("context") && Catch::Contains("11"));
  cache.clear();
  const Tensor next = bench.model.next_logits(tokens, &cache).value();
  CHECK(next.shape() == Shape{B, config.vocab});
  CHECK(near(next, whole.slice(1, T - 1, T).contiguous().view({B, config.vocab}), {1e-5, 1e-6}));
  CHECK(near(bench.model.next_logits(tokens).value(), next, {1e-5, 1e-6}));
}

TEST_CASE("loss is the cross entropy of the logits") {
  Bench bench(kSmall);
  const Tensor tokens = bench.tokens(2, 7, 2), targets = bench.tokens(2, 7, 6);
  const double loss = bench.model.loss(tokens, targets).loss.value().item();
  const auto logits = bench.model.logits(tokens).value().to_vector<double>();
  const auto classes = targets.to_vector<int32_t>();
  double want = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    const double* row = &logits[i * 37];
    double sum = 0;
    for (int c = 0; c < 37; ++c) sum += std::exp(row[c]);
    want += std::log(sum) - row[classes[i]];
  }
  CHECK(loss == Approx(want).epsilon(1e-6));
}

TEST_CASE("bf16 is close to f32") {
  Gpt2Config config = kSmall;
  Bench full(config);
  config.dtype = DType::bf16;
  Bench half(config);
  // The same draws, rounded.
  for (size_t i = 0; i < parameters(full.model).size(); ++i) {
    const auto wide = parameters(full.model)[i], narrow = parameters(half.model)[i];
    CHECK(same_bits(narrow.parameter.value().to_vector<double>(),
                    wide.parameter.value().to(DType::bf16).to_vector<double>()));
  }
  const auto a = full.loss(), b = half.loss();
  CHECK(b.loss.dtype() == DType::f32);
  CHECK(b.loss.value().item() == Approx(a.loss.value().item()).epsilon(2e-3));
  full.tape.backward(a.loss);
  half.tape.backward(b.loss);
  CHECK(half.model.wte.weight.grad().dtype() == DType::f32);
  auto error = half.gradients();
  const auto want = full.gradients();
  for (size_t i = 0; i < want.size(); ++i) error[i] -= want[i];
  CHECK(norm(error) < 0.03 * norm(want));
}

TEST_CASE("what cannot be is refused with the numbers") {
  Tape tape(Runtime::create());
  const auto make = [&](Gpt2Config config) { const Gpt2 model(tape, config); };
  CHECK_THROWS_WITH(make({.heads = 5, .channels = 24}),
                    Catch::Contains("heads must divide channels") && Catch::Contains("5") &&
                        Catch::Contains("24"));
  CHECK_THROWS_WITH(make({.heads = 0}), Catch::Contains("positive"));
  CHECK_THROWS_WITH(make({.vocab = 0}), Catch::Contains("positive"));
  CHECK_THROWS_WITH(make({.layers = -1}), Catch::Contains("layers"));
  CHECK_THROWS_WITH(make({.dropout = 1}), Catch::Contains("dropout"));
  CHECK_THROWS_WITH(gpt2_preset("gpt3"), Catch::Contains("gpt3") && Catch::Contains("nano"));
  Bench bench(kSmall);
  CHECK_THROWS_WITH(bench.loss(1, 12), Catch::Contains("longer than the model's") &&
                                           Catch::Contains("12") && Catch::Contains("11"));
  CHECK_THROWS_WITH(bench.model.loss(bench.tokens(1, 4, 0), bench.tokens(1, 5, 0)),
                    Catch::Contains("one target a token"));
}

TEST_CASE("odd sizes: no layers, one token, none") {
  Gpt2Config config = kSmall;
  config.layers = 0;
  Bench flat(config);
  flat.tape.backward(flat.loss(1, 1).loss);
  CHECK(flat.gradients().size() == static_cast<size_t>(count_parameters(flat.model).total));
  Bench bench(kSmall);
  bench.tape.backward(bench.loss(1, 1).loss);
  CHECK(std::isfinite(norm(bench.gradients())));
  const auto none = bench.loss(0, 5);
  CHECK(none.tokens == 0);
  CHECK(none.loss.value().item() == 0);
}

}  // namespace
}  // namespace sherd
