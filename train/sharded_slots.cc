#include "train/sharded_slots.h"

#include <algorithm>
#include <variant>

namespace sherd {

namespace {

GlobalPlace place_of(const ShardedTensor& t) {
  const TensorPlacement placement = t.placement();
  const auto* shard = std::get_if<Shard>(&placement);
  if (shard == nullptr || t.shape().empty()) return {};
  int64_t inner = 1;
  for (int d = shard->dim + 1; d < t.shape().size(); ++d) inner *= t.shape()[d];
  return {.first = t.offset()[shard->dim] * inner,
          .run = std::max<int64_t>(1, t.local().size(shard->dim) * inner),
          .stride = t.shape()[shard->dim] * inner};
}

}  // namespace

ShardedSlots::ShardedSlots(ShardedModule& module) : module_(module) {
  for (const auto& p : module.trainable())
    slots_.push_back(
        {.name = p.name, .value = p.value, .place = place_of(module.state(p.name, p.value))});
}

void ShardedSlots::finish_gradients() {
  module_.finish_gradients();
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].grad = module_.trainable()[i].grad;
}

GradNorm ShardedSlots::norm(double scale, NormKind kind) const {
  // Rows that several ranks have are brought by one of them.
  std::vector<Slot> rows;
  for (const auto& p : module_.trainable())
    rows.push_back({.name = p.name, .value = p.value, .grad = p.norm_grad});
  return grad_norm(rows, scale, kind, {module_.norm_sum(), module_.norm_max()});
}

void ShardedSlots::step(Optimizer& optimizer, double lr, double grad_scale) {
  optimizer.step(slots_, lr, grad_scale);
  skip();
}

void ShardedSlots::skip() {
  for (auto& slot : slots_) slot.grad = {};
  module_.finish_step();
}

}  // namespace sherd
