// LanguageModel: what models that predict the next token have in common, for those who train them
// and generate with them. A model gives its hidden states and its head; the rest is here.
// B batch, T sequence, C channels, V vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/linear_cross_entropy.h"
#include "autograd/recompute.h"
#include "autograd/regenerate.h"
#include "nn/forward_options.h"
#include "nn/kv_cache.h"
#include "nn/module.h"

namespace sherd {

struct LanguageModelSizes {
  int64_t layers = 0;
  int64_t heads = 0;     ///< of queries
  int64_t kv_heads = 0;  ///< of keys and values
  int64_t head_dim = 0;
  int64_t vocab = 0;
  int64_t context = 0;
  bool causal = true;  ///< a token sees those before it; else all, and nothing can be generated
  /// Elements of the matrices that activations are multiplied with; the head counts, tied or not.
  int64_t matrix_weights = 0;
  DType dtype = DType::f32;
};

class LanguageModel : public Module {
 public:
  virtual LanguageModelSizes sizes() const = 0;

  /// tokens, targets [B, T] i32 → the sum of −log p(target | the tokens seen) over the targets that
  /// are not −1, smoothed as options say, and their number. The [B·T, V] logits are never whole in
  /// memory. Throws usage when T is more than the context.
  LossResult loss(const Tensor& tokens, const Tensor& targets,
                  const ForwardOptions& options = {}) const;

  /// tokens [B, T] i32 → [B, T, V]. With a cache, the tokens after those in it, which they join.
  /// Throws usage when that is more than the context.
  Variable logits(const Tensor& tokens, KvCache* cache = nullptr) const;
  /// The same of the last token alone → [B, V].
  Variable next_logits(const Tensor& tokens, KvCache* cache = nullptr) const;
  /// An empty cache for `batch` sequences of up to the context's tokens.
  KvCache make_cache(int64_t batch = 1) const;
  /// That of the parameters.
  Tape& tape() const { return head_weight().tape(); }

 protected:
  LanguageModel() = default;

  /// tokens [B, T] → [B, T, C], past the last norm.
  virtual Variable hidden(const Tensor& tokens, const ForwardOptions& options,
                          KvCache* cache) const = 0;
  /// [V, C]
  virtual const Parameter& head_weight() const = 0;

  /// Positions of the tokens [B, T], which follow those in the cache.
  struct Span {
    int64_t begin, end;
  };
  /// Throws usage unless tokens have two dims and fit the context.
  Span positions(const Tensor& tokens, const KvCache* cache) const;
};

/// x + part(norm(x)): one of the two parts of a pre-norm block.
template <class Norm, class Part>
Variable residual_part(const Variable& x, const Norm& norm, const ForwardOptions& options,
                       const Part& part) {
  const Variable n = norm.forward(x);
  Variable y = add(x, part(n));
  if (options.recompute.norm) regenerate(n, [&norm, x] { return norm.forward(x); });
  return y;
}

/// x through the blocks in order; Block has forward(x, options, LayerKvCache*, more...). What
/// `more` holds is kept for backward where blocks are recomputed, as options.recompute says.
template <class Block, class... More>
Variable run_blocks(const std::vector<Block>& blocks, Variable x, const ForwardOptions& options,
                    KvCache* cache, const More&... more) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Context in("blocks.", i);
    const auto forward = [&block = blocks[i], options = options.at(i), more...](
                             const Variable& input, LayerKvCache* layer) {
      return block.forward(input, options, layer, more...);
    };
    if (options.recompute.block && cache == nullptr)
      x = recompute("block", {x}, [forward](const std::vector<Variable>& inputs) {
        return forward(inputs[0], nullptr);
      });
    else
      x = forward(x, cache != nullptr ? &cache->layer(i) : nullptr);
  }
  return x;
}

}  // namespace sherd
