#include "train/config.h"

#include <filesystem>

#include "base/file.h"
#include "base/toml.h"

namespace sherd {
namespace {

struct Preset {
  const char* name;
  std::int64_t layers, heads, d_model, context;
  std::optional<std::int64_t> vocab;
};

// tiny for tests; nano is nanoGPT's for a CPU; the others are Radford et al. 2019, table 2.
constexpr Preset kPresets[] = {
    {"tiny", 2, 2, 32, 32, {}},
    {"nano", 4, 4, 128, 64, {}},
    {"gpt2", 12, 12, 768, 1024, 50257},
    {"gpt2-medium", 24, 16, 1024, 1024, 50257},
    {"gpt2-large", 36, 20, 1280, 1024, 50257},
    {"gpt2-xl", 48, 25, 1600, 1024, 50257},
};

void apply_preset(ModelSection& model, const std::string& name) {
  for (const Preset& p : kPresets) {
    if (name != p.name) continue;
    model.layers = p.layers;
    model.heads = p.heads;
    model.d_model = p.d_model;
    model.vocab = p.vocab;
    model.context = p.context;
  }
}

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

}  // namespace

void RunConfig::validate() const {
  check_field(optim.warmup <= run.steps, "optim.warmup", optim.warmup,
              "is more than run.steps =", run.steps);
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
  apply_preset(config.model, first.model.preset);
  merge_toml(config, text, source, overrides);
  if (config.run.name.empty()) config.run.name = std::filesystem::path(source).stem().string();
  if (config.run.out.empty()) config.run.out = "runs/" + config.run.name;
  return config;
}

RunConfig load_run_config(const std::string& path, std::span<const std::string> overrides) {
  return read_run_config(read_file(path, kMaxConfigBytes), path, overrides);
}

}  // namespace sherd
