#include "nn/models/gpt2.h"

#include <chrono>
#include <cmath>

#include "tests/support/language_model_checks.h"

namespace sherd {
namespace {

using test::norm;
using test::same_bits;

constexpr Gpt2Config kSmall{
    .layers = 2, .heads = 3, .channels = 24, .vocab = 37, .context = 11, .dropout = 0.1};

using Bench = test::ModelBench<Gpt2>;

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
  test::check_model_golden<Gpt2>(
      "gpt2_small", {.layers = 4, .heads = 4, .channels = 64, .vocab = 96, .context = 48}, 3 * 48);
}

TEST_CASE("f64 directional derivatives of a whole GPT agree with differences to 1e-6") {
  Gpt2Config config = kSmall;
  config.tied = GENERATE(true, false);
  test::check_directional_derivatives<Gpt2>(config);
}

TEST_CASE("gpt2: recompute, threads, meta, cache, bf16") {
  test::check_recompute<Gpt2>(kSmall,
                              {{.norm = true}, {.mlp = true}, {.qkv = true}, {.attention = true}});
  test::check_threads<Gpt2>(kSmall);
  test::check_meta<Gpt2>(kSmall);
  test::check_bf16<Gpt2>(kSmall);
  for (const DType dtype : {DType::f32, DType::f64}) {
    Gpt2Config config = kSmall;
    config.dtype = dtype;
    test::check_cache<Gpt2>(config);
  }
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
  config.recompute = GENERATE(kRecomputeNone, kRecomputeBlock);
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
