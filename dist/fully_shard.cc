#include "dist/fully_shard.h"

#include <fnmatch.h>

#include <algorithm>
#include <exception>
#include <unordered_map>

#include "base/error.h"
#include "dist/comm/part.h"
#include "dist/gather.h"
#include "nn/init.h"

namespace sherd {

namespace {

bool matches(const PlacementRule& rule, const NamedParameter& p) {
  return fnmatch(rule.match.c_str(), p.name.c_str(), 0) == 0;
}

int cut_dim(const NamedParameter& p, const ShardPlan& plan) {
  for (const auto& rule : plan.placements) {
    if (!matches(rule, p)) continue;
    check(rule.dim >= 0 && rule.dim < p.parameter.value().dims(),
          "a placement cuts a dim that the parameter does not have:", p.name,
          p.parameter.value().shape(), "dim", rule.dim);
    return rule.dim;
  }
  return 0;
}

void check_placements(const std::vector<NamedParameter>& all, const ShardPlan& plan) {
  for (const auto& rule : plan.placements) {
    check(std::any_of(all.begin(), all.end(),
                      [&](const NamedParameter& p) { return matches(rule, p); }),
          "dist.placement: no parameter has a name that matches", rule.match + "; the first is",
          all.empty() ? "" : all.front().name);
  }
}

UnitParameter unit_parameter(const NamedParameter& p, const ShardPlan& plan,
                             const Communicator& shard) {
  UnitParameter u;
  u.name = p.name;
  u.parameter = p.parameter;
  u.row = plan.row;
  const Shape& shape = p.parameter.value().shape();
  const auto bytes =
      p.parameter.value().numel() * static_cast<int64_t>(size_of(p.parameter.value().dtype()));
  if (u.is_sharded() && bytes <= plan.resident_below) u.row = kZero2;
  u.dim = u.is_sharded() && !shape.empty() ? cut_dim(p, plan) : 0;
  u.cut = cut_along(shape, u.dim, shard.size());
  u.part_shape = piece_shape(shape, u.dim, u.cut, shard.rank());
  return u;
}

/// Makes the resting place of a parameter's values, and moves them there if there are any.
void settle(UnitParameter& p, int rank) {
  const Tensor& whole = p.parameter.value();
  Storage& storage = *whole.storage();
  // The module's own handle is one; the parameter list's copies share it.
  check(whole.storage().use_count() == 1,
        "a tensor of a parameter is held elsewhere; build the optimizer after fully_shard, from "
        "trainable():",
        p.name);
  if (!p.is_sharded()) {
    storage.allocate();
    p.local = p.row.optimizer == Placement::replicate
                  ? whole
                  : rows_of(whole, p.cut.begin(rank), p.cut.begin(rank + 1));
    return;
  }
  const CategoryScope scope(*whole.runtime(), Category::params);
  p.local = Tensor::empty(whole.runtime(), p.part_shape, whole.dtype(), p.name);
  if (storage.resident()) {
    copy_part(p.cut, rank, whole, p.local);
    storage.release();
  }
  storage.recategorize(Category::gathered);
}

}  // namespace

class ShardedModule::Guard final : public StorageGuard {
 public:
  Guard(Schedule& schedule, Unit& unit) : schedule_(schedule), unit_(unit) {}
  void before_access(const Storage& /*storage*/) override { schedule_.touch(unit_); }

 private:
  Schedule& schedule_;
  Unit& unit_;
};

ShardedModule::ShardedModule(Module& module, Tape& tape, DeviceMesh& mesh, const ShardPlan& plan)
    : mesh_(mesh) {
  Communicator& shard = mesh.shard();
  const int k = plan.reshard_after_forward;
  check(k >= 0 && (k <= 1 || shard.size() % k == 0),
        "reshard_after_forward is true, false or a number that divides the shards:", k, "of",
        shard.size());
  const UnitOf unit_of = plan.unit_of ? plan.unit_of : unit_by_block;
  std::unordered_map<std::string, Unit*> by_name;
  {
    const std::vector<NamedParameter> all = sherd::parameters(module);
    check_placements(all, plan);
    for (const auto& p : all) {
      std::string name = unit_of(p);
      bool shared = false;
      for (const auto& alias : p.aliases) {
        const std::string other = unit_of({alias, p.parameter, {}});
        shared = true;
        if (other != name) name.clear();  // of no one unit: of the root
      }
      auto& unit = by_name[name];
      if (unit == nullptr) {
        unit = units_.emplace_back(std::make_unique<Unit>()).get();
        unit->name = name;
        unit->kept = name.empty();
      }
      unit->kept = unit->kept || shared;
      unit->parameters.push_back(unit_parameter(p, plan, shard));
    }
  }
  if (k > 1 && k < shard.size()) {
    std::vector<int> members;
    for (int r = 0; r < k; ++r) members.push_back(shard.rank() / k * k + r);
    group_ = shard.subgroup(members);
  }
  schedule_ = std::make_unique<Schedule>(tape, units_, mesh, group_.get(), plan);
  for (auto& unit : units_) {
    const Context in("unit ", unit->label());
    std::vector<Tensor> resting;
    guards_.push_back(std::make_unique<Guard>(*schedule_, *unit));
    for (auto& p : unit->parameters) {
      settle(p, shard.rank());
      if (p.is_sharded()) {
        unit->gathered_bytes += p.parameter.value().numel() *
                                static_cast<int64_t>(size_of(p.parameter.value().dtype()));
        resting.push_back(p.local);
      }
    }
    if (!resting.empty()) unit->resting = shard.rest(resting);
    for (auto& p : unit->parameters) {
      if (p.is_sharded()) p.parameter.value().storage()->set_guard(guards_.back().get());
      p.parameter.state().take_gradient = [this, u = unit.get(), &p,
                                           frozen = !p.trainable()](Tensor whole) {
        check(!frozen,
              "a parameter was frozen when fully_shard was called, so nothing updates it; unfreeze "
              "it before:",
              p.name);
        schedule_->deliver(*u, p, std::move(whole));
      };
      if (!p.trainable()) continue;
      trainable_units_.push_back(&p);
      trainable_.push_back({p.name, p.parameter.value().shape(), p.local, {}, {}});
    }
  }
  for (const auto* names : {&plan.prefetch.forward_units, &plan.prefetch.backward_units})
    for (const auto& name : *names) {
      bool known = false;
      std::string all;
      for (const auto& unit : units_) {
        known = known || unit->label() == name;
        all += (all.empty() ? "" : ", ") + unit->label();
      }
      check(known, "dist.prefetch names a unit that there is not:", name + "; units are", all);
    }
  schedule_->plan_order();
  mesh.world().barrier({"fully_shard"});
}

ShardedModule::~ShardedModule() {
  // The others may still read this rank's parts. After an error nobody is waited for.
  if (std::uncaught_exceptions() == 0) {
    try {
      mesh_.world().barrier({"the sharded module's end"});
      for (const auto& unit : units_)
        if (unit->resting.id >= 0) mesh_.shard().forget(unit->resting);
    } catch (const std::exception&) {
      // Another rank failed: whoever calls next, or ends, is told.
    }
  }
  for (auto& unit : units_)
    for (auto& p : unit->parameters) {
      p.parameter.value().storage()->set_guard(nullptr);
      p.parameter.state().take_gradient = nullptr;
    }
}

std::unique_ptr<ShardedModule> fully_shard(Module& module, Tape& tape, DeviceMesh& mesh,
                                           const ShardPlan& plan) {
  name_parameters(module);
  return std::unique_ptr<ShardedModule>(new ShardedModule(module, tape, mesh, plan));
}

void ShardedModule::init(uint64_t seed) {
  const int rank = mesh_.shard().rank();
  for (auto& unit : units_)
    for (auto& p : unit->parameters) {
      const RandomKey key = initial_key(seed, p.name);
      if (!p.is_sharded()) {
        fill_initial(p.parameter.value(), p.parameter.init(), key);
      } else if (p.cut.outer == 1) {
        fill_initial(p.local, p.parameter.init(), key, p.cut.begin(rank));
      } else {
        const Tensor whole =
            Tensor::empty(p.local.runtime(), p.parameter.value().shape(), p.local.dtype(), p.name);
        fill_initial(whole, p.parameter.init(), key);
        copy_part(p.cut, rank, whole, p.local);
      }
    }
  after_values_changed();
}

void ShardedModule::set_sync(bool on) { schedule_->set_sync(on); }
void ShardedModule::set_traffic(Traffic traffic) { schedule_->set_traffic(traffic); }

void ShardedModule::finish_gradients() {
  schedule_->finish_gradients();
  const Communicator& world = mesh_.world();
  for (size_t i = 0; i < trainable_.size(); ++i) {
    UnitParameter& p = *trainable_units_[i];
    LocalParameter& local = trainable_[i];
    local.grad = p.grad;
    local.norm_grad = p.grad;
    if (!p.grad) continue;
    if (p.row.optimizer == Placement::replicate) {
      const int64_t rows = p.grad.dims() == 0 ? 1 : p.grad.size(0);
      const Cut cut = even_cut(1, rows, 1, world.size());
      local.norm_grad = rows_of(p.grad, cut.begin(world.rank()), cut.begin(world.rank() + 1));
    } else if (mesh_.replicate() != nullptr && mesh_.replicate()->rank() != 0) {
      local.norm_grad = {};
    }
  }
}

void ShardedModule::finish_step() {
  std::vector<CutTensor> items;
  for (auto& unit : units_)
    for (auto& p : unit->parameters) {
      p.grad = {};
      if (!p.is_sharded() && p.row.optimizer == Placement::shard && p.trainable())
        items.push_back({p.local, p.parameter.value(), p.cut});
    }
  for (auto& local : trainable_) local.grad = local.norm_grad = {};
  if (!items.empty())
    mesh_.shard()
        .all_gather(std::move(items), {"parameters", Traffic::all_gather, RunOn::caller})
        .event()
        .wait();
  after_values_changed();
}

void ShardedModule::after_values_changed() {
  for (auto& unit : units_)
    for (auto& p : unit->parameters) p.parameter.value().storage()->bump_version();
  mesh_.world().barrier({"after the step"});
}

void ShardedModule::unshard() {
  for (auto& unit : units_) schedule_->hold(*unit);
}

void ShardedModule::reshard() {
  for (auto& unit : units_) schedule_->release_hold(*unit);
  schedule_->release_all();
}

UnitParameter& ShardedModule::find(const std::string& name) const {
  for (const auto& unit : units_)
    for (auto& p : unit->parameters)
      if (p.name == name) return p;
  fail("the module has no parameter of this name:", name);
}

ShardedTensor ShardedModule::value(const std::string& name) const {
  const UnitParameter& p = find(name);
  const Tensor& whole = p.parameter.value();
  if (!p.is_sharded()) return {mesh_, whole.shape(), Replicate{}, whole};
  return {mesh_, whole.shape(), Shard{p.dim}, p.local};
}

ShardedTensor ShardedModule::state(const std::string& name, const Tensor& local) const {
  const UnitParameter& p = find(name);
  const Shape& shape = p.parameter.value().shape();
  if (p.row.optimizer == Placement::replicate) return {mesh_, shape, Replicate{}, local};
  return {mesh_, shape, Shard{p.dim}, local};
}

void ShardedModule::set_value(const std::string& name, const Tensor& whole) {
  const Context in("parameter ", name);
  value(name).assign(whole);
  find(name).parameter.value().storage()->bump_version();
}

TrafficBytes ShardedModule::received() const {
  TrafficBytes total = mesh_.world().received();
  const auto add = [&](const Communicator* group) {
    if (group == nullptr || group == &mesh_.world()) return;
    const TrafficBytes more = group->received();
    for (size_t i = 0; i < total.size(); ++i) total[i] += more[i];
  };
  add(&mesh_.shard());
  add(mesh_.replicate());
  add(group_.get());
  return total;
}

std::function<void(std::span<int64_t>)> ShardedModule::norm_sum() const {
  return [this](std::span<int64_t> words) { sum_words(mesh_.world(), words, {"gradient norm"}); };
}

std::function<void(std::span<int64_t>)> ShardedModule::norm_max() const {
  return [this](std::span<int64_t> words) { max_words(mesh_.world(), words, {"gradient norm"}); };
}

}  // namespace sherd
