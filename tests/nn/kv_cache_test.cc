#include "nn/kv_cache.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

Tensor filled(const RuntimePtr& rt, int64_t tokens, double value) {
  return Tensor::full(rt, {2, tokens, 3, 4}, value);
}

TEST_CASE("a cache holds what was appended, in order, without moving it") {
  const auto rt = Runtime::create();
  KvCache cache(rt, {.layers = 2, .batch = 2, .capacity = 5, .heads = 3, .head_dim = 4});
  CHECK(cache.length() == 0);
  const auto first = cache.layer(0).append(filled(rt, 2, 1), filled(rt, 2, -1));
  CHECK(first.k.shape() == Shape{2, 2, 3, 4});
  // The length of the model's cache is that of its last layer: a pass is over then.
  CHECK(cache.length() == 0);
  cache.layer(1).append(filled(rt, 2, 1), filled(rt, 2, -1));
  CHECK(cache.length() == 2);

  const auto second = cache.layer(0).append(filled(rt, 3, 2), filled(rt, 3, -2));
  CHECK(second.v.shape() == Shape{2, 5, 3, 4});
  CHECK(second.k.storage() == first.k.storage());
  const auto k = second.k.to_vector<float>(), v = second.v.to_vector<float>();
  for (size_t b = 0; b < 2; ++b)
    for (size_t i = 0; i < 60; ++i) {
      CHECK(k[b * 60 + i] == (i < 24 ? 1 : 2));
      CHECK(v[b * 60 + i] == (i < 24 ? -1 : -2));
    }
  CHECK_THROWS_WITH(cache.layer(0).append(filled(rt, 1, 3), filled(rt, 1, 3)),
                    Catch::Contains("full") && Catch::Contains("5"));
  cache.clear();
  CHECK(cache.layer(0).append(filled(rt, 1, 9), filled(rt, 1, 9)).k.size(1) == 1);
}

TEST_CASE("keys of another shape are refused") {
  const auto rt = Runtime::create();
  LayerKvCache cache(rt, {2, 5, 3, 4}, DType::f32);
  CHECK_THROWS_WITH(cache.append(Tensor::zeros(rt, {1, 1, 3, 4}), Tensor::zeros(rt, {1, 1, 3, 4})),
                    Catch::Contains("[1, 1, 3, 4]"));
  CHECK_THROWS_WITH(cache.append(filled(rt, 1, 0), filled(rt, 2, 0)),
                    Catch::Contains("[2, 2, 3, 4]"));
}

}  // namespace
}  // namespace sherd
