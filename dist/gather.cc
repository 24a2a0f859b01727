#include "dist/gather.h"

#include "base/error.h"
#include "dist/comm/part.h"

namespace sherd {

namespace {

/// The parameter's cut over a group of another size.
Cut cut_over(const UnitParameter& p, const Communicator& group) {
  return even_cut(p.cut.outer, p.cut.dim(), p.cut.inner, group.size());
}

template <class ItemOf>
void start(Unit& unit, Communicator& comm, Traffic traffic, Resting resting,
           const ItemOf& item_of) {
  check(unit.state == Unit::State::released, "a unit is gathered twice:", unit.label());
  std::vector<CutTensor> items;
  for (auto& p : unit.parameters) {
    if (!p.is_sharded()) continue;
    p.parameter.value().storage()->allocate();
    items.push_back(item_of(p));
  }
  unit.gathering = comm.all_gather(std::move(items), {unit.label(), traffic}, {}, resting);
  unit.state = Unit::State::gathering;
}

}  // namespace

void gather_start(Unit& unit, Communicator& comm, Traffic traffic) {
  start(unit, comm, traffic, unit.resting, [](const UnitParameter& p) {
    return CutTensor{p.local, p.parameter.value(), p.cut};
  });
}

void gather_group_start(Unit& unit, Communicator& group) {
  start(unit, group, Traffic::all_gather, {}, [&](const UnitParameter& p) {
    return CutTensor{p.group_local, p.parameter.value(), cut_over(p, group)};
  });
}

void gather_wait(Unit& unit) {
  if (unit.state != Unit::State::gathering) return;
  const Context in("unit ", unit.label());
  unit.gathering.event().wait();
  unit.gathering = {};
  forget_group(unit);
  unit.state = Unit::State::gathered;
}

void forget_group(Unit& unit) {
  for (auto& p : unit.parameters) p.group_local = {};
  unit.in_group = false;
}

void release(Unit& unit) {
  gather_wait(unit);  // the transport must not write into bytes that are gone
  for (auto& p : unit.parameters)
    if (p.is_sharded()) p.parameter.value().storage()->release();
  unit.state = Unit::State::released;
  unit.prefetched = false;
}

void release_to_group(Unit& unit, Communicator& group) {
  for (auto& p : unit.parameters) {
    if (!p.is_sharded()) continue;
    const Tensor& whole = p.parameter.value();
    const CategoryScope scope(*whole.runtime(), Category::params);
    const Cut cut = cut_over(p, group);
    p.group_local = Tensor::empty(whole.runtime(), {cut.numel(group.rank())}, whole.dtype());
    copy_part(cut, group.rank(), whole, p.group_local);
  }
  release(unit);
  unit.in_group = true;
}

}  // namespace sherd
