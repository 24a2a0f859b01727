// Gpt2: a decoder of pre-norm transformer blocks with learned positions.
// Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
// B batch, T sequence, C channels, V vocabulary.
#pragma once

#include <string_view>
#include <vector>

#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/layer_norm.h"
#include "nn/models/language_model.h"
#include "nn/self_attention.h"

namespace sherd {

struct Gpt2Config {
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t channels = 768;
  int64_t hidden = 0;  ///< of the feed-forward part; 0: 4 · channels
  int64_t vocab = 50257;
  int64_t context = 1024;
  double dropout = 0;  ///< of the embeddings and of what each part adds to the residual stream
  bool tied = true;    ///< the head's weight is the token table
  Recompute recompute = kRecomputeNone;
  DType dtype = DType::f32;

  /// Throws usage on a size that is not positive, heads that do not divide channels, or a dropout
  /// outside [0, 1).
  void validate() const;
  int64_t num_hidden() const { return hidden > 0 ? hidden : 4 * channels; }
  LanguageModelSizes sizes() const;
};

/// "gpt2" (124M), "gpt2-medium" (355M), "gpt2-large" (774M), "gpt2-xl" (1558M); and over bytes
/// "nano" (nanoGPT's for a CPU: 4 layers, 4 heads, 128 channels, context 64) and "tiny" (2 layers,
/// 2 heads, 32 channels, context 32). Throws usage, with the names, for another.
Gpt2Config gpt2_preset(std::string_view name);

/// x + attn(ln1(x)), then the same with mlp and ln2.
struct Gpt2Block : Module {
  LayerNorm ln1;
  SelfAttention attn;
  LayerNorm ln2;
  FeedForward mlp;

  Gpt2Block(Tape& tape, const Gpt2Config& config);
  void fields(ModuleVisitor& visit) override;
  /// x [B, T, C] → [B, T, C]
  Variable forward(const Variable& x, const ForwardOptions& options, LayerKvCache* cache) const;
};

/// Names are wte.weight, wpe.weight, blocks.0.ln1.weight, …, lnf.bias, head.weight.
struct Gpt2 : LanguageModel {
  Gpt2Config config;
  Embedding wte;  ///< [V, C]
  Embedding wpe;  ///< [context, C]
  std::vector<Gpt2Block> blocks;
  LayerNorm lnf;
  Parameter head;  ///< [V, C]; wte.weight when tied

  Gpt2(Tape& tape, const Gpt2Config& config);
  void fields(ModuleVisitor& visit) override;

  LanguageModelSizes sizes() const override { return config.sizes(); }

 protected:
  Variable hidden(const Tensor& tokens, const ForwardOptions& options,
                  KvCache* cache) const override;
  const Parameter& head_weight() const override { return head; }
};

}  // namespace sherd
