#include "nn/self_attention.h"

#include "autograd/ops/attention.h"
#include "autograd/ops/rotary.h"
#include "autograd/ops/shape_ops.h"
#include "autograd/regenerate.h"

namespace sherd {

namespace {

int64_t checked_heads(const SelfAttentionConfig& config) {
  check(config.heads > 0 && config.channels % config.heads == 0,
        "the heads of attention must divide its channels: heads", config.heads, "channels",
        config.channels);
  return config.heads;
}

int64_t checked_kv_heads(const SelfAttentionConfig& config) {
  const int64_t kv_heads = config.kv_heads > 0 ? config.kv_heads : config.heads;
  check(config.heads % kv_heads == 0,
        "the heads of keys and values must divide those of queries:", kv_heads, "and",
        config.heads);
  return kv_heads;
}

}  // namespace

SelfAttention::SelfAttention(Tape& tape, const SelfAttentionConfig& config)
    : heads(checked_heads(config)),
      kv_heads(checked_kv_heads(config)),
      causal(config.causal),
      qkv(tape, {.in = config.channels,
                 .out = (heads + 2 * kv_heads) * (config.channels / heads),
                 .bias = config.bias,
                 .dtype = config.dtype,
                 .init = config.init}),
      proj(tape, {.in = config.channels,
                  .out = config.channels,
                  .bias = config.bias,
                  .dtype = config.dtype,
                  .init = config.proj_init}),
      dropout(config.dropout) {}

void SelfAttention::fields(ModuleVisitor& visit) {
  visit("qkv", qkv);
  visit("proj", proj);
}

Variable SelfAttention::forward(const Variable& x, const ForwardOptions& options,
                                LayerKvCache* cache, const Tensor& rotary_rows) const {
  const Context in("attn");
  const int64_t B = x.size(0), T = x.size(1), C = x.size(2), D = C / heads;
  const auto project = [this, x, rotary_rows, B, T, D] {
    const Variable all = reshape(qkv.forward(x), {B, T, heads + 2 * kv_heads, D});
    return rotary_rows ? rotary(all, rotary_rows, heads + kv_heads) : all;
  };
  const Variable qkv_BTHD = project();
  const auto parts = split(qkv_BTHD, 2, {heads, kv_heads, kv_heads});
  const Variable& q = parts[0];
  Variable k = parts[1], v = parts[2];
  if (cache != nullptr) {
    check(causal, "attention that sees all tokens cannot go on from a cache");
    const auto [all_k, all_v] = cache->append(k.value(), v.value());
    k = x.tape().constant(all_k);
    v = x.tape().constant(all_v);
  }
  const auto attend = [q, k, v, causal = causal] { return attention(q, k, v, {.causal = causal}); };
  const Variable y = attend();  // [B, T, H, D]
  Variable out = dropout.forward(proj.forward(reshape(y, {B, T, C})), options);
  if (options.recompute.attention) regenerate(y, attend);
  if (options.recompute.qkv) regenerate(qkv_BTHD, project);
  return out;
}

}  // namespace sherd
