#include "nn/models/llama.h"

#include "tests/support/language_model_checks.h"

namespace sherd {
namespace {

const LlamaConfig kSmall{.layers = 2,
                         .heads = 4,
                         .kv_heads = 2,
                         .channels = 24,
                         .hidden = 40,
                         .vocab = 37,
                         .context = 11,
                         .dropout = 0.1};

using Bench = test::ModelBench<Llama>;

TEST_CASE("llama has the names and the sizes of the originals") {
  // Llama 3.2 1B, Llama 3 8B and Llama 2 7B.
  const auto size = [](const LlamaConfig& config) {
    Bench bench(config, {.device = kMeta});
    return count_parameters(bench.model).total;
  };
  CHECK(size({.layers = 16,
              .heads = 32,
              .kv_heads = 8,
              .channels = 2048,
              .hidden = 8192,
              .vocab = 128256,
              .context = 64,
              .tied = true}) == 1'235'814'400);
  CHECK(size({.layers = 32,
              .heads = 32,
              .kv_heads = 8,
              .channels = 4096,
              .hidden = 14336,
              .vocab = 128256,
              .context = 64}) == 8'030'261'248);
  CHECK(size({.layers = 32, .heads = 32, .channels = 4096, .vocab = 32000, .context = 64}) ==
        6'738'415'616);

  Bench bench(kSmall);
  std::vector<std::string> names;
  for (const auto& p : parameters(bench.model)) names.push_back(p.name);
  CHECK(names ==
        std::vector<std::string>{
            "wte.weight", "blocks.0.norm1.weight", "blocks.0.attn.qkv.weight",
            "blocks.0.attn.proj.weight", "blocks.0.norm2.weight", "blocks.0.mlp.gate_up.weight",
            "blocks.0.mlp.down.weight", "blocks.1.norm1.weight", "blocks.1.attn.qkv.weight",
            "blocks.1.attn.proj.weight", "blocks.1.norm2.weight", "blocks.1.mlp.gate_up.weight",
            "blocks.1.mlp.down.weight", "normf.weight", "head.weight"});
  CHECK(bench.model.blocks[0].attn.qkv.weight.shape() == Shape{(4 + 2 * 2) * 6, 24});
}

TEST_CASE("loss and every gradient of a whole Llama agree with PyTorch in f64") {
  test::check_model_golden<Llama>("llama_small",
                                  {.layers = 3,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .channels = 64,
                                   .hidden = 96,
                                   .vocab = 96,
                                   .context = 48,
                                   .rotary = {.theta = 500,
                                              .scaling = Llama3Scaling{.factor = 4,
                                                                       .low_freq_factor = 1,
                                                                       .high_freq_factor = 4,
                                                                       .original_context = 32}}},
                                  3 * 48);
}

TEST_CASE("f64 directional derivatives of a whole Llama agree with differences to 1e-6") {
  LlamaConfig config = kSmall;
  config.tied = GENERATE(true, false);
  test::check_directional_derivatives<Llama>(config);
}

TEST_CASE("llama: recompute, threads, meta, cache, bf16") {
  test::check_recompute<Llama>(
      kSmall,
      {{.activation = true}, {.norm = true}, {.mlp = true}, {.qkv = true}, {.attention = true}});
  test::check_threads<Llama>(kSmall);
  test::check_meta<Llama>(kSmall);
  test::check_bf16<Llama>(kSmall);
  for (const DType dtype : {DType::f32, DType::f64}) {
    LlamaConfig config = kSmall;
    config.dtype = dtype;
    test::check_cache<Llama>(config);
  }
}

TEST_CASE("an encoder's tokens see the whole sequence, and its gradients hold") {
  LlamaConfig config = kSmall;
  config.causal = false;
  test::check_directional_derivatives<Llama>(config);
  test::check_recompute<Llama>(config, {{.qkv = true}, {.attention = true}});
  for (const bool causal : {true, false}) {
    config.causal = causal;
    Bench bench(config);
    const NoGrad no_grad(bench.tape);
    std::vector<int32_t> tokens(9, 5);
    const auto first = [&] {
      const Tensor logits =
          bench.model.logits(Tensor::from<int32_t>(bench.runtime, {1, 9}, tokens)).value();
      return logits.slice(1, 0, 1).to_vector<double>();
    };
    const auto before = first();
    tokens.back() = 6;
    CHECK((first() == before) == causal);
  }
  Bench bench(config);
  KvCache cache = bench.model.make_cache();
  CHECK_THROWS_WITH(bench.model.logits(bench.tokens(1, 2, 0), &cache), Catch::Contains("cache"));
}

TEST_CASE("a cache holds the grouped heads alone") {
  const LanguageModelSizes sizes = kSmall.sizes();
  CHECK(sizes.kv_heads == 2);
  CHECK(sizes.head_dim == 6);
  CHECK(sizes.matrix_weights == 2 * (48 * 24 + 24 * 24 + 3 * 24 * 40) +
                                    37 * 24);  // by hand: qkv, proj, gate, up, down, head
}

TEST_CASE("the feed-forward width of a Llama is 8/3 of its channels, up to a multiple of 256") {
  CHECK(LlamaConfig{.channels = 4096}.num_hidden() == 11008);
  CHECK(LlamaConfig{.channels = 384}.num_hidden() == 1024);
  CHECK(LlamaConfig{.channels = 384, .hidden = 100}.num_hidden() == 100);
}

TEST_CASE("llama refuses what cannot be, with the numbers") {
  Tape tape(Runtime::create());
  const auto make = [&](const LlamaConfig& config) { const Llama model(tape, config); };
  CHECK_THROWS_WITH(make({.heads = 5, .channels = 24}), Catch::Contains("heads must divide"));
  CHECK_THROWS_WITH(make({.heads = 8, .channels = 24}), Catch::Contains("even number"));
  CHECK_THROWS_WITH(make({.heads = 4, .kv_heads = 3, .channels = 24}),
                    Catch::Contains("kv_heads must divide heads") && Catch::Contains("3"));
  CHECK_THROWS_WITH(make({.vocab = 0}), Catch::Contains("positive"));
  CHECK_THROWS_WITH(make({.dropout = 1}), Catch::Contains("dropout"));
}

}  // namespace
}  // namespace sherd
