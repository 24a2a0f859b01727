#include "train/make_model.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

RunConfig config(const std::vector<std::string>& sets = {}) {
  return read_run_config("[data]\nfiles = [\"x\"]\n", "c.toml", sets);
}

TEST_CASE("a GPT-2 is what [model], [train] and [precision] say") {
  const Gpt2Config a = gpt2_config(config(), 77);
  CHECK(a.layers == 4);
  CHECK(a.num_hidden() == 4 * 128);
  CHECK(a.vocab == 77);
  CHECK(a.tied);
  CHECK(a.recompute == kRecomputeNone);
  CHECK(a.dtype == DType::f32);
  const Gpt2Config b =
      gpt2_config(config({"model.d_ff=100", "model.tied=false", "model.dropout=0.2",
                          "train.recompute=block", "precision.compute=bf16"}),
                  77);
  CHECK(b.hidden == 100);
  CHECK(!b.tied);
  CHECK(b.dropout == 0.2);
  CHECK(b.recompute == kRecomputeBlock);
  CHECK(gpt2_config(config({"train.recompute=[\"norm\", \"qkv\"]"}), 77).recompute ==
        Recompute{.norm = true, .qkv = true});
  CHECK(b.dtype == DType::bf16);
  CHECK(gpt2_config(config({"precision.compute=f16"}), 77).dtype == DType::f16);
}

TEST_CASE("a Llama is what [model] says") {
  const RunConfig c = config({"model.arch=llama", "model.kv_heads=2", "model.rope_theta=5e5",
                              "model.rope_scaling={factor=32}", "model.tied=false"});
  const LlamaConfig a = llama_config(c, 77);
  CHECK(a.kv_heads == 2);
  CHECK(a.num_hidden() == 512);
  CHECK(a.vocab == 77);
  CHECK(!a.tied);
  CHECK(a.rotary.theta == 5e5);
  REQUIRE(a.rotary.scaling);
  CHECK(a.rotary.scaling->factor == 32);
  CHECK(a.rotary.scaling->original_context == 8192);

  Tape tape(Runtime::create());
  CHECK(dynamic_cast<Llama*>(make_model(tape, c, 77).get()) != nullptr);
  CHECK(dynamic_cast<Gpt2*>(make_model(tape, config(), 77).get()) != nullptr);
}

TEST_CASE("presets of Llama have the sizes of the published models") {
  const auto parameters_of = [](const char* preset) {
    const RuntimePtr meta = Runtime::create({.device = kMeta});
    Tape tape(meta);
    const RunConfig c = config({std::string("model.preset=") + preset, "model.context=64"});
    return count_parameters(*make_model(tape, c, *c.model.vocab)).total;
  };
  CHECK(parameters_of("llama-3.2-1b") == 1'235'814'400);
  CHECK(parameters_of("llama-3-8b") == 8'030'261'248);
}

TEST_CASE("what a Llama cannot be is refused with key and way out") {
  const auto refused = [](const std::vector<std::string>& sets, const std::string& what) {
    CHECK_THROWS_WITH(config(sets), Catch::Contains(what));
  };
  refused({"model.arch=llama", "model.kv_heads=3"}, "kv_heads");
  refused({"model.arch=llama", "model.d_model=12", "model.heads=4"}, "odd width");
  refused({"model.arch=llama", "model.rope_theta=0"}, "rope_theta");
  refused({"model.arch=llama", "model.rope_scaling={factor=0.5}"}, "factor");
  refused({"model.arch=llama", "model.rope_scaling={low_freq_factor=4}"}, "high_freq_factor");
}

}  // namespace
}  // namespace sherd
