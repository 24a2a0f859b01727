#include "dist/reduce.h"

#include <utility>

#include "base/ceil_log2.h"
#include "base/error.h"
#include "base/progress.h"
#include "dist/comm/part.h"
#include "tensor/kernels/accumulate.h"

namespace sherd {

namespace {

Tensor add(Tensor total, const Tensor& more) {
  if (!total) return more;
  accumulate(total, more);
  return total;
}

}  // namespace

void add_whole(UnitParameter& p, Tensor whole) {
  p.whole_grad = p.whole_grad ? add(p.whole_grad, whole) : std::move(whole);
}

int wire_shift(DType wire, int ranks) {
  return wire == DType::f16 ? ceil_log2(static_cast<uint64_t>(ranks)) : 0;
}

UnitReduction reduce_start(Unit& unit, DeviceMesh& mesh, DType wire) {
  // In both axes of a mesh by all ranks: the second sums what the first one did.
  const Reduction how{.wire = wire, .shift = wire_shift(wire, mesh.world().size())};
  UnitReduction reduction;
  reduction.unit = &unit;
  const Communicator& shard = mesh.shard();
  // Calls of one kind are one group.
  std::vector<CutTensor> scattered, reduced;
  const auto scattered_present = std::make_shared<std::vector<char>>();
  const auto reduced_present = std::make_shared<std::vector<char>>();
  for (auto& p : unit.parameters) {
    if (!p.trainable()) continue;
    const RuntimePtr& runtime = p.parameter.runtime();
    const CategoryScope scope(*runtime, Category::grads);
    const DType dtype = accumulate_dtype(p.parameter.dtype());
    Tensor whole = std::exchange(p.whole_grad, {});
    const bool absent = !whole;
    if (p.row.optimizer == Placement::replicate) {
      if (absent) whole = Tensor::empty(runtime, p.parameter.value().shape(), dtype);
      reduction.items.push_back({&p, whole, whole, reduced_present, reduced.size()});
      reduced.push_back({{}, whole, p.cut, absent});
      continue;
    }
    Tensor part;
    if (p.row.gradients == Placement::replicate && !absent)
      part = rows_of(whole, p.cut.begin(shard.rank()), p.cut.begin(shard.rank() + 1));
    else
      part = Tensor::empty(runtime, p.part_shape, dtype, p.name);
    reduction.items.push_back({&p, whole, part, scattered_present, scattered.size()});
    scattered.push_back({part, whole, p.cut, absent});
  }
  if (!scattered.empty()) {
    std::vector<CutTensor> parts;
    for (const auto& item : scattered)
      parts.push_back({{},
                       item.local.view({item.local.numel()}),
                       even_cut(1, item.local.numel(), 1, mesh.replicas())});
    bool any_absent = false;
    for (const auto& item : scattered) any_absent = any_absent || item.absent;
    reduction.works.push_back(mesh.shard().reduce_scatter(
        std::move(scattered), how, {unit.label(), Traffic::reduce_scatter}, {}, scattered_present));
    if (mesh.replicate() != nullptr && any_absent) {
      // A parameter that no rank of this replica used: only now is that known.
      const double begin_s = steady_seconds();
      reduction.works.back().event().wait();
      reduction.waited_s = steady_seconds() - begin_s;
      for (size_t i = 0; i < parts.size(); ++i) parts[i].absent = (*scattered_present)[i] == 0;
    }
    if (mesh.replicate() != nullptr)
      reduction.works.push_back(mesh.replicate()->all_reduce(
          std::move(parts), how, {unit.label(), Traffic::all_reduce}, {}, scattered_present));
  }
  if (!reduced.empty())
    reduction.works.push_back(mesh.world().all_reduce(
        std::move(reduced), how, {unit.label(), Traffic::all_reduce}, {}, reduced_present));
  return reduction;
}

void reduce_finish(UnitReduction& reduction, AccumulateOrder order, int64_t passes) {
  const Context in("unit ", reduction.unit->label());
  for (auto& work : reduction.works) work.event().wait();
  reduction.works.clear();
  for (auto& item : reduction.items) {
    UnitParameter& p = *item.parameter;
    const bool present = (*item.present)[item.index] != 0;
    item.whole = {};
    if (order == AccumulateOrder::sequential) {
      if (present) p.grad = add(std::move(p.grad), item.reduced);
      item.reduced = {};
      continue;
    }
    // A binary counter of the passes; an absent gradient is an empty sum.
    Tensor sum = present ? std::move(item.reduced) : Tensor();
    item.reduced = {};
    size_t level = 0;
    for (; (passes >> level & 1) != 0; ++level) {
      Tensor left = std::exchange(p.tree[level], {});
      if (left && sum) left = add(std::move(left), sum);
      if (left) sum = std::move(left);
    }
    if (p.tree.size() <= level) p.tree.resize(level + 1);
    p.tree[level] = std::move(sum);
  }
}

void join_tree(UnitParameter& p, int64_t passes) {
  Tensor sum;
  for (size_t level = 0; level < p.tree.size(); ++level) {
    if ((passes >> level & 1) == 0) continue;
    Tensor left = std::exchange(p.tree[level], {});
    if (left && sum) left = add(std::move(left), sum);
    if (left) sum = std::move(left);
  }
  p.tree.clear();
  p.grad = std::move(sum);
}

}  // namespace sherd
