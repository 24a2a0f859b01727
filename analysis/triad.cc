#include "analysis/triad.h"

namespace sherd {

Triad::Triad(const RuntimePtr& runtime)
    : a_(Tensor::zeros(runtime, {kElements})),
      b_(Tensor::full(runtime, {kElements}, 1)),
      c_(Tensor::full(runtime, {kElements}, 2)) {}

void Triad::run() const {
  using Lanes = float __attribute__((vector_size(32), may_alias));  // scalars would be the limit
  constexpr int64_t kLanes = sizeof(Lanes) / sizeof(float);
  constexpr int64_t kBlock = 1 << 13;  // of Lanes
  auto* a = reinterpret_cast<Lanes*>(a_.data<float>());
  const auto* b = reinterpret_cast<const Lanes*>(b_.data<float>());
  const auto* c = reinterpret_cast<const Lanes*>(c_.data<float>());
  a_.runtime()->pool().run(kElements / kLanes / kBlock, [=](int64_t block) {
    for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) a[i] = b[i] + 0.5f * c[i];
  });
}

}  // namespace sherd
