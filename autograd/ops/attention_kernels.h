// What the attention kernels are told. B batch, T queries, S keys, H heads, Hkv key heads, D head
// dim
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

struct AttentionSizes {
  int64_t B, T, S, H, Hkv, D;
  bool causal;

  /// How many leading keys query t may see, in [0, S].
  [[gnu::always_inline]] int64_t visible(int64_t t) const {
    const int64_t n = causal ? t + 1 + S - T : S;
    return n < 0 ? 0 : n > S ? S : n;
  }
};

/// A [B, steps, heads, D] tensor whose D is dense; strides in elements.
template <class T>
struct HeadRows {
  T* data;
  int64_t batch, step, head;
  [[gnu::always_inline]] T* row(int64_t b, int64_t t, int64_t h) const {
    return data + b * batch + t * step + h * head;
  }
};

/// Queries of one forward item, so that its scratch stays far below a core's L2.
constexpr int64_t attention_query_tile(int64_t D) { return D <= 128 ? 264 : 48; }

/// Items: (batch, head, query tile), all independent.
template <class T>
struct AttentionForward {
  using F = sherd::Accumulate<T>;
  AttentionSizes sizes;
  HeadRows<const T> q, k, v;
  HeadRows<T> y;
  F* lse;            ///< [B, H, T] log2 Σ exp(score); +inf where nothing is visible. Or null
  const bool* mask;  ///< [B, S], or null
  F scale;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

/// Items: (batch, key head). One forms dk and dv of its head and dq of the heads that it serves.
template <class T>
struct AttentionBackward {
  using F = sherd::Accumulate<T>;
  AttentionSizes sizes;
  HeadRows<const T> q, k, v, y, dy;
  const F* lse;
  const bool* mask;
  F scale;
  F* delta;            ///< [B, H, T] scratch: Σ_D y·dy
  HeadRows<F> dq_sum;  ///< where dq is summed over key tiles: dq itself if T is F
  HeadRows<T> dq, dk, dv;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
