#include "nn/kv_cache.h"

#include "base/error.h"

namespace sherd {

LayerKvCache::LayerKvCache(const RuntimePtr& runtime, const Shape& shape, DType dtype)
    : k_(Tensor::empty(runtime, shape, dtype, "kv_cache")),
      v_(Tensor::empty(runtime, shape, dtype, "kv_cache")) {}

LayerKvCache::KeysValues LayerKvCache::append(const Tensor& k, const Tensor& v) {
  check(k.dims() == 4 && k.shape() == v.shape() && k.size(0) == k_.size(0) &&
            k.size(2) == k_.size(2) && k.size(3) == k_.size(3),
        "the cache wants keys and values [batch, tokens, heads, head dim] like its own", k_.shape(),
        "and got", k.shape(), "and", v.shape());
  const int64_t end = length_ + k.size(1);
  check(end <= capacity(), "the cache of keys and values is full: it holds", capacity(),
        "tokens, wanted are", end);
  k_.slice(1, length_, end).copy_from(k);
  v_.slice(1, length_, end).copy_from(v);
  length_ = end;
  return {k_.slice(1, 0, end), v_.slice(1, 0, end)};
}

KvCache::KvCache(const RuntimePtr& runtime, const KvCacheConfig& config) {
  const Shape shape{config.batch, config.capacity, config.heads, config.head_dim};
  for (int64_t i = 0; i < config.layers; ++i) layers_.emplace_back(runtime, shape, config.dtype);
}

}  // namespace sherd
