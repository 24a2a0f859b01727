#include "train/make_model.h"

#include <algorithm>

namespace sherd {
namespace {

Recompute recompute_of(const TrainSection& train) {
  const auto has = [&](const char* what) {
    return std::find(train.recompute.begin(), train.recompute.end(), what) != train.recompute.end();
  };
  return {.block = has("block"),
          .activation = has("activation"),
          .norm = has("norm"),
          .mlp = has("mlp"),
          .qkv = has("qkv"),
          .attention = has("attention")};
}

RotaryOptions rotary_options(const ModelSection& m) {
  RotaryOptions options{.theta = m.rope_theta};
  if (m.rope_scaling)
    options.scaling = Llama3Scaling{.factor = m.rope_scaling->factor,
                                    .low_freq_factor = m.rope_scaling->low_freq_factor,
                                    .high_freq_factor = m.rope_scaling->high_freq_factor,
                                    .original_context = m.rope_scaling->original_context};
  return options;
}

}  // namespace

Gpt2Config gpt2_config(const RunConfig& config, std::int64_t vocab) {
  const ModelSection& m = config.model;
  return {.layers = m.layers,
          .heads = m.heads,
          .channels = m.d_model,
          .hidden = m.d_ff.value_or(0),
          .vocab = vocab,
          .context = m.context,
          .dropout = m.dropout,
          .tied = m.tied,
          .recompute = recompute_of(config.train),
          .dtype = parse_dtype(config.precision.compute)};
}

LlamaConfig llama_config(const RunConfig& config, std::int64_t vocab) {
  const ModelSection& m = config.model;
  return {.layers = m.layers,
          .heads = m.heads,
          .kv_heads = m.num_kv_heads(),
          .channels = m.d_model,
          .hidden = m.d_ff.value_or(0),
          .vocab = vocab,
          .context = m.context,
          .rotary = rotary_options(m),
          .dropout = m.dropout,
          .tied = m.tied,
          .causal = m.arch != "encoder",
          .recompute = recompute_of(config.train),
          .dtype = parse_dtype(config.precision.compute)};
}

std::unique_ptr<LanguageModel> make_model(Tape& tape, const RunConfig& config, std::int64_t vocab) {
  if (config.model.arch == "llama" || config.model.arch == "encoder")
    return std::make_unique<Llama>(tape, llama_config(config, vocab));
  return std::make_unique<Gpt2>(tape, gpt2_config(config, vocab));
}

}  // namespace sherd
