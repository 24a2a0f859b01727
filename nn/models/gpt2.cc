#include "nn/models/gpt2.h"

#include <cmath>
#include <numeric>

#include "autograd/ops/arithmetic.h"

namespace sherd {

namespace {

constexpr double kInitStd = 0.02;

const Gpt2Config& checked(const Gpt2Config& config) {
  config.validate();
  return config;
}

/// Of the projections into the residual stream, of which there are two a layer: keeps the variance
/// of their sum.
Init residual_init(const Gpt2Config& config) {
  return Init::normal(kInitStd / std::sqrt(2.0 * static_cast<double>(config.layers)));
}

/// [begin, end) as i32.
Tensor indices(const RuntimePtr& runtime, int64_t begin, int64_t end) {
  std::vector<int32_t> p(static_cast<size_t>(end - begin));
  std::iota(p.begin(), p.end(), static_cast<int32_t>(begin));
  return Tensor::from<int32_t>(runtime, {end - begin}, p);
}

}  // namespace

void Gpt2Config::validate() const {
  check(layers >= 0, "gpt2: layers must not be negative:", layers);
  check(heads > 0 && channels > 0 && hidden >= 0 && vocab > 0 && context > 0,
        "gpt2: heads, channels, vocab and context must be positive: heads", heads, "channels",
        channels, "vocab", vocab, "context", context);
  check(channels % heads == 0, "gpt2: heads must divide channels: heads", heads, "channels",
        channels);
  check(dropout >= 0 && dropout < 1, "gpt2: dropout must be in [0, 1):", dropout);
}

LanguageModelSizes Gpt2Config::sizes() const {
  return {.layers = layers,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = channels / heads,
          .vocab = vocab,
          .context = context,
          .matrix_weights =
              layers * (4 * channels * channels + 2 * channels * num_hidden()) + vocab * channels,
          .dtype = dtype};
}

Gpt2Config gpt2_preset(std::string_view name) {
  if (name == "tiny") return {.layers = 2, .heads = 2, .channels = 32, .vocab = 256, .context = 32};
  if (name == "nano")
    return {.layers = 4, .heads = 4, .channels = 128, .vocab = 256, .context = 64};
  if (name == "gpt2") return {};
  if (name == "gpt2-medium") return {.layers = 24, .heads = 16, .channels = 1024};
  if (name == "gpt2-large") return {.layers = 36, .heads = 20, .channels = 1280};
  if (name == "gpt2-xl") return {.layers = 48, .heads = 25, .channels = 1600};
  fail("gpt2: unknown preset; known are tiny, nano, gpt2, gpt2-medium, gpt2-large, gpt2-xl:", name);
}

Gpt2Block::Gpt2Block(Tape& tape, const Gpt2Config& config)
    : ln1(tape, {.channels = config.channels, .dtype = config.dtype}),
      attn(tape, {.channels = config.channels,
                  .heads = config.heads,
                  .dropout = config.dropout,
                  .dtype = config.dtype,
                  .init = Init::normal(kInitStd),
                  .proj_init = residual_init(config)}),
      ln2(tape, {.channels = config.channels, .dtype = config.dtype}),
      mlp(tape, {.channels = config.channels,
                 .hidden = config.num_hidden(),
                 .dropout = config.dropout,
                 .dtype = config.dtype,
                 .init = Init::normal(kInitStd),
                 .down_init = residual_init(config)}) {}

void Gpt2Block::fields(ModuleVisitor& visit) {
  visit("ln1", ln1);
  visit("attn", attn);
  visit("ln2", ln2);
  visit("mlp", mlp);
}

Variable Gpt2Block::forward(const Variable& x, const ForwardOptions& options,
                            LayerKvCache* cache) const {
  const Variable y = residual_part(x, ln1, options, [&](const Variable& n) {
    return attn.forward(n, options.at("attn"), cache);
  });
  return residual_part(y, ln2, options,
                       [&](const Variable& n) { return mlp.forward(n, options.at("mlp")); });
}

Gpt2::Gpt2(Tape& tape, const Gpt2Config& c)
    : config(checked(c)),
      wte(tape, {.rows = c.vocab, .channels = c.channels, .dtype = c.dtype}),
      wpe(tape, {.rows = c.context, .channels = c.channels, .dtype = c.dtype}),
      lnf(tape, {.channels = c.channels, .dtype = c.dtype}),
      head(c.tied ? wte.weight
                  : Parameter(tape, {c.vocab, c.channels}, c.dtype, Init::normal(kInitStd))) {
  blocks.reserve(static_cast<size_t>(c.layers));
  for (int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(tape, c);
  name_parameters(*this);
}

void Gpt2::fields(ModuleVisitor& visit) {
  visit("wte", wte);
  visit("wpe", wpe);
  visit("blocks", blocks);
  visit("lnf", lnf);
  visit("head.weight", head);
}

Variable Gpt2::hidden(const Tensor& tokens, const ForwardOptions& options, KvCache* cache) const {
  const Span at = positions(tokens, cache);
  Variable x = add(wte.forward(tokens), wpe.forward(indices(tokens.runtime(), at.begin, at.end)));
  x = Dropout(config.dropout).forward(x, options.at("embedding"));
  ForwardOptions blocks_options = options;
  blocks_options.recompute = config.recompute;
  x = run_blocks(blocks, std::move(x), blocks_options, cache);
  const Context in("lnf");
  return lnf.forward(x);
}

}  // namespace sherd
