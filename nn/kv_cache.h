// KvCache: keys and values of the tokens that a model has seen, so that generating one more token
// costs one token. Filled without gradients.
// B batch, T new tokens, H heads of keys and values, D head dim.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace sherd {

/// Of one attention layer.
class LayerKvCache {
 public:
  struct KeysValues {
    Tensor k, v;
  };

  /// Holds up to `capacity` tokens: two tensors [B, capacity, H, D].
  LayerKvCache(const RuntimePtr& runtime, const Shape& shape, DType dtype);

  /// k, v [B, T, H, D] of new tokens → views [B, length() + T, H, D] of all so far.
  /// Throws usage if they do not fit.
  KeysValues append(const Tensor& k, const Tensor& v);
  int64_t length() const { return length_; }
  int64_t capacity() const { return k_.size(1); }
  void clear() { length_ = 0; }

 private:
  Tensor k_, v_;
  int64_t length_ = 0;
};

struct KvCacheConfig {
  int64_t layers = 0;
  int64_t batch = 1;
  int64_t capacity = 0;  ///< tokens
  int64_t heads = 0;
  int64_t head_dim = 0;
  DType dtype = DType::f32;
};

class KvCache {
 public:
  KvCache(const RuntimePtr& runtime, const KvCacheConfig& config);

  LayerKvCache& layer(size_t i) { return layers_.at(i); }
  /// Tokens seen so far: the position of the next one.
  int64_t length() const { return layers_.empty() ? 0 : layers_.back().length(); }
  /// Forgets all tokens, and keeps the memory.
  void clear() {
    for (auto& layer : layers_) layer.clear();
  }

 private:
  std::vector<LayerKvCache> layers_;
};

}  // namespace sherd
