#include "nn/models/language_model.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/shape_ops.h"

namespace sherd {

LossResult LanguageModel::loss(const Tensor& tokens, const Tensor& targets,
                               const ForwardOptions& options) const {
  check(targets.shape() == tokens.shape(), "the model wants one target a token: tokens",
        tokens.shape(), "targets", targets.shape());
  const Variable h = hidden(tokens, options, nullptr);
  const Context in("head");
  const int64_t rows = tokens.numel();
  return linear_cross_entropy(reshape(h, {rows, h.size(2)}), head_weight(),
                              targets.contiguous().view({rows}),
                              {.label_smoothing = options.label_smoothing});
}

Variable LanguageModel::logits(const Tensor& tokens, KvCache* cache) const {
  const Variable h = hidden(tokens, {}, cache);
  const Context in("head");
  return linear(h, head_weight());
}

Variable LanguageModel::next_logits(const Tensor& tokens, KvCache* cache) const {
  const Variable h = hidden(tokens, {}, cache);
  const Context in("head");
  const int64_t B = h.size(0), T = h.size(1);
  check(T > 0, "the model wants at least one token to say what comes next");
  return linear(reshape(slice(h, 1, T - 1, T), {B, h.size(2)}), head_weight());
}

KvCache LanguageModel::make_cache(int64_t batch) const {
  const LanguageModelSizes s = sizes();
  return KvCache(head_weight().runtime(), {.layers = s.layers,
                                           .batch = batch,
                                           .capacity = s.context,
                                           .heads = s.kv_heads,
                                           .head_dim = s.head_dim,
                                           .dtype = s.dtype});
}

LanguageModel::Span LanguageModel::positions(const Tensor& tokens, const KvCache* cache) const {
  check(tokens.dims() == 2, "the model wants tokens [batch, sequence], not", tokens.shape());
  const int64_t begin = cache != nullptr ? cache->length() : 0;
  const int64_t end = begin + tokens.size(1), context = sizes().context;
  check(end <= context, "the context is longer than the model's:", end, "tokens, at most", context);
  return {begin, end};
}

}  // namespace sherd
