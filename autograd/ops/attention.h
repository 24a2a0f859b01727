// Scaled dot-product attention, tile by tile: no [T, S] matrix ever exists.
// B batch, T queries, S keys, H heads, Hkv key heads, D head dim
#pragma once

#include <optional>

#include "autograd/tape.h"

namespace sherd {

struct AttentionOptions {
  /// Query t sees keys up to t + S - T: the last query sees all, as a cache of keys wants.
  bool causal = false;
  /// bool [B, S], true: the key may be seen. Empty: all may.
  Tensor key_mask = {};
  /// Of the products q·k; 1 / sqrt(D) unless given.
  std::optional<double> scale = std::nullopt;
};

/// y[t] = Σ_s softmax_s(scale · q[t]·k[s]) v[s] over the keys that query t sees; 0 if it sees none
/// q [B, T, H, D], k, v [B, S, Hkv, D] of one dtype, f32|bf16|f16|f64 → y [B, T, H, D] contiguous;
/// key head h / (H / Hkv) serves query head h. Inputs may be strided views; they are read in place
/// where D is dense, which slices of one [B, T, H + 2 Hkv, D] buffer are.
/// saves q, k, v, y and the log-sum-exp [B, H, T] f32 (f64 for f64); computes in that dtype, sums
/// in an order fixed by shape. With S = T the gradients are slices of one [B, T, H + 2 Hkv, D]
/// buffer, in the order q, k, v, so that the gradient of a split is no copy
/// throws usage on other shapes, mixed dtypes, or a mask that is not bool [B, S]
/// Dao et al. 2022, FlashAttention; Milakov & Gimelshein 2018
Variable attention(const Variable& q, const Variable& k, const Variable& v,
                   const AttentionOptions& options = {});

}  // namespace sherd
