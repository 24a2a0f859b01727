#include "train/config.h"

#include <filesystem>

#include "base/file.h"
#include "base/toml.h"

namespace sherd {
namespace {

struct Preset {
  const char* name;
  ModelSection model;
};

// tiny for tests; nano is nanoGPT's for a CPU; gpt2 is Radford et al. 2019, table 2; llama is the
// configuration of the models that Meta published.
const Preset kPresets[] = {
    {"tiny", {.layers = 2, .heads = 2, .d_model = 32, .context = 32}},
    {"nano", {.layers = 4, .heads = 4, .d_model = 128, .context = 64}},
    {"gpt2", {.layers = 12, .heads = 12, .d_model = 768, .vocab = 50257, .context = 1024}},
    {"gpt2-medium", {.layers = 24, .heads = 16, .d_model = 1024, .vocab = 50257, .context = 1024}},
    {"gpt2-large", {.layers = 36, .heads = 20, .d_model = 1280, .vocab = 50257, .context = 1024}},
    {"gpt2-xl", {.layers = 48, .heads = 25, .d_model = 1600, .vocab = 50257, .context = 1024}},
    {"llama-3.2-1b",
     {.arch = "llama",
      .layers = 16,
      .heads = 32,
      .kv_heads = 8,
      .d_model = 2048,
      .d_ff = 8192,
      .vocab = 128256,
      .context = 131072,
      .rope_theta = 500000,
      .rope_scaling = RopeScalingSection{.factor = 32}}},
    {"llama-3-8b",
     {.arch = "llama",
      .layers = 32,
      .heads = 32,
      .kv_heads = 8,
      .d_model = 4096,
      .d_ff = 14336,
      .vocab = 128256,
      .context = 8192,
      .tied = false,
      .rope_theta = 500000}},
};

/// What the keys beside the preset's name stand upon.
ModelSection preset(const std::string& name) {
  for (const Preset& p : kPresets)
    if (name == p.name) return p.model;
  return {};
}

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

}  // namespace

void RunConfig::validate() const {
  check_field(optim.warmup <= run.steps, "optim.warmup", optim.warmup,
              "is more than run.steps =", run.steps);
  check_field(optim.warmup + optim.decay.value_or(0) <= run.steps, "optim.decay",
              optim.decay.value_or(0), "and optim.warmup =", optim.warmup,
              "are together more than run.steps =", run.steps);
  check_field(precision.moments == "f32" || optim.name == "adamw", "precision.moments",
              precision.moments, "is for optim.name = adamw, not for", optim.name);
  if (train.global_batch) {
    const std::int64_t at_once = train.micro_batch * dist.ranks;
    check_field(*train.global_batch % at_once == 0, "train.global_batch", *train.global_batch,
                "is not a multiple of train.micro_batch x dist.ranks =", at_once);
  }
}

RunConfig read_run_config(std::string_view text, const std::string& source,
                          std::span<const std::string> overrides) {
  // The preset's name decides what the other keys stand upon, so it is read first.
  RunConfig first;
  merge_toml(first, text, source, overrides, TomlChecks::types_only);
  RunConfig config;
  config.model = preset(first.model.preset);
  merge_toml(config, text, source, overrides);
  if (config.run.name.empty()) config.run.name = std::filesystem::path(source).stem().string();
  if (config.run.out.empty()) config.run.out = "runs/" + config.run.name;
  return config;
}

RunConfig load_run_config(const std::string& path, std::span<const std::string> overrides) {
  return read_run_config(read_file(path, kMaxConfigBytes), path, overrides);
}

}  // namespace sherd
