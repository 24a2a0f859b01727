// Gpt2: a decoder of pre-norm transformer blocks with learned positions.
// Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
// B batch, T sequence, C channels, V vocabulary.
#pragma once

#include <string_view>
#include <vector>

#include "autograd/ops/linear_cross_entropy.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/layer_norm.h"
#include "nn/self_attention.h"

namespace sherd {

/// What backward runs again instead of keeping it.
enum class Recompute { none, block };

struct Gpt2Config {
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t channels = 768;
  int64_t hidden = 0;  ///< of the feed-forward part; 0: 4 · channels
  int64_t vocab = 50257;
  int64_t context = 1024;
  double dropout = 0;  ///< of the embeddings and of what each part adds to the residual stream
  bool tied = true;    ///< the head's weight is the token table
  Recompute recompute = Recompute::none;
  DType dtype = DType::f32;

  /// Throws usage on a size that is not positive, heads that do not divide channels, or a dropout
  /// outside [0, 1).
  void validate() const;
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
struct Gpt2 : Module {
  Gpt2Config config;
  Embedding wte;  ///< [V, C]
  Embedding wpe;  ///< [context, C]
  std::vector<Gpt2Block> blocks;
  LayerNorm lnf;
  Parameter head;  ///< [V, C]; wte.weight when tied

  Gpt2(Tape& tape, const Gpt2Config& config);
  void fields(ModuleVisitor& visit) override;

  /// tokens, targets [B, T] i32 → the sum of −log p(target | tokens before) over the targets that
  /// are not −1, and their number. The [B·T, V] logits are never whole in memory.
  /// Throws usage when T is more than the context.
  LossResult loss(const Tensor& tokens, const Tensor& targets,
                  const ForwardOptions& options = {}) const;

  /// tokens [B, T] i32 → [B, T, V]. With a cache, the tokens after those in it, which they join.
  /// Throws usage when that is more than the context.
  Variable logits(const Tensor& tokens, KvCache* cache = nullptr) const;
  /// The same of the last token alone → [B, V].
  Variable next_logits(const Tensor& tokens, KvCache* cache = nullptr) const;
  /// An empty cache for `batch` sequences of up to the context's tokens.
  KvCache make_cache(int64_t batch = 1) const;

 private:
  /// tokens [B, T] → [B, T, C], past the last norm.
  Variable hidden(const Tensor& tokens, const ForwardOptions& options, KvCache* cache) const;
};

}  // namespace sherd
