// SelfAttention: attention of a sequence to itself, between two projections.
// B batch, T sequence, C channels, H heads, G heads of keys and values, D head dim (C / H),
// S tokens seen so far.
#pragma once

#include "nn/dropout.h"
#include "nn/kv_cache.h"
#include "nn/linear.h"

namespace sherd {

struct SelfAttentionConfig {
  int64_t channels = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  ///< each serves heads / kv_heads of the others; 0: heads
  bool bias = true;      ///< of both projections
  bool causal = true;    ///< a token sees those before it; else all
  double dropout = 0;    ///< of the output
  DType dtype = DType::f32;
  Init init = Init::normal(0.02);
  Init proj_init = Init::normal(0.02);
};

/// y = proj(attention(q, k, v)), [q, k, v] = qkv(x), the heads of q, k and v side by side
struct SelfAttention : Module {
  int64_t heads;
  int64_t kv_heads;
  bool causal;
  Linear qkv;   ///< [(H + 2G) D, C]
  Linear proj;  ///< [C, C]
  Dropout dropout;

  /// Throws usage unless the heads divide the channels, and kv_heads the heads.
  SelfAttention(Tape& tape, const SelfAttentionConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// x [B, T, C] → [B, T, C]. With a cache (causal alone), x are the tokens after those in it: they
  /// attend to these too, and join it. With rows of a rotary_table, those of x's positions, queries
  /// and keys are turned. Saves x, qkv(x) (turned) and what attention saves.
  Variable forward(const Variable& x, const ForwardOptions& options, LayerKvCache* cache = nullptr,
                   const Tensor& rotary_rows = {}) const;
};

}  // namespace sherd
