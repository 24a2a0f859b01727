#include "nn/self_attention.h"

#include "autograd/ops/attention.h"
#include "autograd/ops/shape_ops.h"

namespace sherd {

namespace {

int64_t checked_heads(const SelfAttentionConfig& config) {
  check(config.heads > 0 && config.channels % config.heads == 0,
        "the heads of attention must divide its channels: heads", config.heads, "channels",
        config.channels);
  return config.heads;
}

}  // namespace

SelfAttention::SelfAttention(Tape& tape, const SelfAttentionConfig& config)
    : heads(checked_heads(config)),
      qkv(tape, {.in = config.channels,
                 .out = 3 * config.channels,
                 .dtype = config.dtype,
                 .init = config.init}),
      proj(tape, {.in = config.channels,
                  .out = config.channels,
                  .dtype = config.dtype,
                  .init = config.proj_init}),
      dropout(config.dropout) {}

void SelfAttention::fields(ModuleVisitor& visit) {
  visit("qkv", qkv);
  visit("proj", proj);
}

Variable SelfAttention::forward(const Variable& x, const ForwardOptions& options,
                                LayerKvCache* cache) const {
  const Context in("attn");
  const int64_t B = x.size(0), T = x.size(1), C = x.size(2), D = C / heads;
  const auto parts = split(reshape(qkv.forward(x), {B, T, 3 * heads, D}), 2, {heads, heads, heads});
  const Variable& q = parts[0];
  Variable k = parts[1], v = parts[2];
  if (cache != nullptr) {
    const auto [all_k, all_v] = cache->append(k.value(), v.value());
    k = x.tape().constant(all_k);
    v = x.tape().constant(all_v);
  }
  const Variable y = attention(q, k, v, {.causal = true});  // [B, T, H, D]
  return dropout.forward(proj.forward(reshape(y, {B, T, C})), options);
}

}  // namespace sherd
