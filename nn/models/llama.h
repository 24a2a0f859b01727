// Llama: pre-norm transformer blocks with rotary positions, grouped heads of keys and values,
// SwiGLU, and no biases; a decoder, or (causal = false) an encoder, whose tokens see the whole
// sequence.
// Touvron et al. 2023, "LLaMA"; Dubey et al. 2024, "The Llama 3 Herd of Models".
// B batch, T sequence, C channels, V vocabulary.
#pragma once

#include <vector>

#include "autograd/ops/rotary.h"
#include "nn/embedding.h"
#include "nn/gated_feed_forward.h"
#include "nn/models/language_model.h"
#include "nn/rms_norm.h"
#include "nn/self_attention.h"

namespace sherd {

struct LlamaConfig {
  int64_t layers = 16;
  int64_t heads = 32;
  int64_t kv_heads = 0;  ///< 0: heads
  int64_t channels = 2048;
  int64_t hidden = 0;  ///< of the feed-forward part; 0: 8/3 channels, up to a multiple of 256
  int64_t vocab = 128256;
  int64_t context = 8192;
  RotaryOptions rotary = {};
  double norm_eps = 1e-5;
  double dropout = 0;  ///< of the embeddings and of what each part adds to the residual stream
  bool tied = false;   ///< the head's weight is the token table
  bool causal = true;  ///< a token sees those before it; else all
  Recompute recompute = kRecomputeNone;
  DType dtype = DType::f32;

  /// Throws usage on a size that is not positive, heads that do not divide channels into an even
  /// number, kv_heads that do not divide heads, or a dropout outside [0, 1).
  void validate() const;
  int64_t num_kv_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t num_hidden() const;
  LanguageModelSizes sizes() const;
};

/// x + attn(norm1(x)), then the same with mlp and norm2.
struct LlamaBlock : Module {
  RmsNorm norm1;
  SelfAttention attn;
  RmsNorm norm2;
  GatedFeedForward mlp;

  LlamaBlock(Tape& tape, const LlamaConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// x [B, T, C] → [B, T, C]; rotary_rows are those of x's positions
  Variable forward(const Variable& x, const ForwardOptions& options, LayerKvCache* cache,
                   const Tensor& rotary_rows) const;
};

/// Names are wte.weight, blocks.0.norm1.weight, blocks.0.attn.qkv.weight, …, normf.weight,
/// head.weight.
struct Llama : LanguageModel {
  LlamaConfig config;
  Embedding wte;  ///< [V, C]
  std::vector<LlamaBlock> blocks;
  RmsNorm normf;
  Parameter head;  ///< [V, C]; wte.weight when tied

  Llama(Tape& tape, const LlamaConfig& config);
  void fields(ModuleVisitor& visit) override;
  LanguageModelSizes sizes() const override { return config.sizes(); }

 protected:
  Variable hidden(const Tensor& tokens, const ForwardOptions& options,
                  KvCache* cache) const override;
  const Parameter& head_weight() const override { return head; }

 private:
  Tensor rotary_table_;  ///< of the whole context
};

}  // namespace sherd
