#include "nn/models/llama.h"

#include <cmath>

#include "autograd/ops/arithmetic.h"

namespace sherd {

namespace {

constexpr double kInitStd = 0.02;

const LlamaConfig& checked(const LlamaConfig& config) {
  config.validate();
  return config;
}

/// Of the projections into the residual stream, of which there are two a layer: keeps the variance
/// of their sum.
Init residual_init(const LlamaConfig& config) {
  return Init::normal(kInitStd / std::sqrt(2.0 * static_cast<double>(config.layers)));
}

}  // namespace

void LlamaConfig::validate() const {
  check(layers >= 0, "llama: layers must not be negative:", layers);
  check(heads > 0 && kv_heads >= 0 && channels > 0 && hidden >= 0 && vocab > 0 && context > 0,
        "llama: heads, channels, vocab and context must be positive: heads", heads, "kv_heads",
        kv_heads, "channels", channels, "vocab", vocab, "context", context);
  check(channels % heads == 0 && channels / heads % 2 == 0,
        "llama: heads must divide channels into an even number, for pairs that turn: heads", heads,
        "channels", channels);
  check(heads % num_kv_heads() == 0, "llama: kv_heads must divide heads: kv_heads", num_kv_heads(),
        "heads", heads);
  check(dropout >= 0 && dropout < 1, "llama: dropout must be in [0, 1):", dropout);
}

int64_t LlamaConfig::num_hidden() const {
  return hidden > 0 ? hidden : (8 * channels / 3 + 255) / 256 * 256;
}

LanguageModelSizes LlamaConfig::sizes() const {
  const int64_t head_dim = channels / heads;
  return {.layers = layers,
          .heads = heads,
          .kv_heads = num_kv_heads(),
          .head_dim = head_dim,
          .vocab = vocab,
          .context = context,
          .causal = causal,
          .matrix_weights =
              layers * channels *
                  ((heads + 2 * num_kv_heads()) * head_dim + channels + 3 * num_hidden()) +
              vocab * channels,
          .dtype = dtype};
}

LlamaBlock::LlamaBlock(Tape& tape, const LlamaConfig& config)
    : norm1(tape, {.channels = config.channels, .eps = config.norm_eps, .dtype = config.dtype}),
      attn(tape, {.channels = config.channels,
                  .heads = config.heads,
                  .kv_heads = config.kv_heads,
                  .bias = false,
                  .causal = config.causal,
                  .dropout = config.dropout,
                  .dtype = config.dtype,
                  .init = Init::normal(kInitStd),
                  .proj_init = residual_init(config)}),
      norm2(tape, {.channels = config.channels, .eps = config.norm_eps, .dtype = config.dtype}),
      mlp(tape, {.channels = config.channels,
                 .hidden = config.num_hidden(),
                 .dropout = config.dropout,
                 .dtype = config.dtype,
                 .init = Init::normal(kInitStd),
                 .down_init = residual_init(config)}) {}

void LlamaBlock::fields(ModuleVisitor& visit) {
  visit("norm1", norm1);
  visit("attn", attn);
  visit("norm2", norm2);
  visit("mlp", mlp);
}

Variable LlamaBlock::forward(const Variable& x, const ForwardOptions& options, LayerKvCache* cache,
                             const Tensor& rotary_rows) const {
  const Variable y = residual_part(x, norm1, options, [&](const Variable& n) {
    return attn.forward(n, options.at("attn"), cache, rotary_rows);
  });
  return residual_part(y, norm2, options,
                       [&](const Variable& n) { return mlp.forward(n, options.at("mlp")); });
}

Llama::Llama(Tape& tape, const LlamaConfig& c)
    : config(checked(c)),
      wte(tape, {.rows = c.vocab, .channels = c.channels, .dtype = c.dtype}),
      normf(tape, {.channels = c.channels, .eps = c.norm_eps, .dtype = c.dtype}),
      head(c.tied ? wte.weight
                  : Parameter(tape, {c.vocab, c.channels}, c.dtype, Init::normal(kInitStd))),
      rotary_table_(rotary_table(tape.runtime(), c.context, c.channels / c.heads, c.rotary,
                                 accumulate_dtype(c.dtype))) {
  blocks.reserve(static_cast<size_t>(c.layers));
  for (int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(tape, c);
  name_parameters(*this);
}

void Llama::fields(ModuleVisitor& visit) {
  visit("wte", wte);
  visit("blocks", blocks);
  visit("normf", normf);
  visit("head.weight", head);
}

Variable Llama::hidden(const Tensor& tokens, const ForwardOptions& options, KvCache* cache) const {
  const Span at = positions(tokens, cache);
  Variable x = Dropout(config.dropout).forward(wte.forward(tokens), options.at("embedding"));
  ForwardOptions blocks_options = options;
  blocks_options.recompute = config.recompute;
  x = run_blocks(blocks, std::move(x), blocks_options, cache,
                 rotary_table_.slice(0, at.begin, at.end));
  const Context in("normf");
  return normf.forward(x);
}

}  // namespace sherd
