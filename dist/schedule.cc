#include "dist/schedule.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/progress.h"
#include "dist/gather.h"

namespace sherd {

namespace {

bool contains(const std::vector<Unit*>& units, const Unit* unit) {
  return std::find(units.begin(), units.end(), unit) != units.end();
}

}  // namespace

Schedule::Schedule(Tape& tape, std::vector<std::unique_ptr<Unit>>& units, DeviceMesh& mesh,
                   Communicator* group, const ShardPlan& plan)
    : tape_(tape), units_(units), mesh_(mesh), group_(group), plan_(plan) {}

void Schedule::plan_order() {
  for (const auto& unit : units_)
    if (unit->gathers() && !unit->kept) order_.push_back(unit.get());
}

void Schedule::touch(Unit& unit) {
  unit.last_op = tape_.ops();
  const bool backward = tape_.in_backward();
  if (&unit == current_ && in_backward_ == backward) return;
  const bool training = tape_.enabled() || backward;
  if (in_pass_ && training && pass_ != tape_.times_emptied()) end_pass();  // it was given up
  if (training && !in_pass_) begin_pass();
  if (backward) end_after_backward();
  if (backward != in_backward_) {
    in_backward_ = backward;
    position_ = backward ? static_cast<int64_t>(trace_.size()) : -1;
    left_.clear();
  }
  if (current_ != nullptr && current_ != &unit) leaving_.push_back(current_);
  std::erase(leaving_, &unit);
  current_ = &unit;
  // An op may hold addresses in several units: those that it read stay until it is over.
  for (Unit* left : std::vector<Unit*>(leaving_)) {
    if (left->last_op == unit.last_op) continue;
    std::erase(leaving_, left);
    leave(*left);
  }
  if (!unit.kept) {
    if (training && contains(left_, &unit)) {
      counters_.reused.push_back(unit.label());
      if (!contains(to_keep_, &unit)) to_keep_.push_back(&unit);
    }
    if (training && !backward && !contains(trace_, &unit)) trace_.push_back(&unit);
    const auto& line = backward ? trace_ : order_;
    const auto at = std::find(line.begin(), line.end(), &unit);
    if (at != line.end()) position_ = at - line.begin();
  }
  if (unit.state == Unit::State::released) start_gather(unit, false);
  prefetch();
  ensure(unit);
  unit.prefetched = false;
  if (narrate_) say("uses", unit, backward ? " in backward" : " in forward");
}

void Schedule::begin_pass() {
  in_pass_ = true;
  pass_ = tape_.times_emptied();
  in_backward_ = false;
  position_ = -1;
  trace_.clear();
  left_.clear();
  for (Unit* unit : to_keep_) {
    unit->kept = true;
    std::erase(order_, unit);
  }
  to_keep_.clear();
}

void Schedule::end_after_backward() {
  if (ends_after_backward_) return;
  ends_after_backward_ = true;
  tape_.after_backward([this] { end_pass(); });
}

void Schedule::end_pass() {
  if (tape_.in_backward()) {
    unreduced_ = !sync_;
    // Parameters that nothing used on this rank take part with zeros.
    for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) {
      const auto& all = (*unit)->parameters;
      const bool lacks = std::any_of(all.begin(), all.end(), [](const UnitParameter& p) {
        return p.trainable() && !p.delivered;
      });
      if (lacks && sync_) start_reduction(**unit);
    }
    if (in_pass_) order_ = trace_;
    for (const auto& unit : units_)
      if (unit->gathers() && !unit->kept && !contains(order_, unit.get()))
        order_.push_back(unit.get());
  }
  for (const auto& unit : units_)
    for (auto& p : unit->parameters) p.delivered = false;
  release_all();
  in_backward_ = false;
  ends_after_backward_ = false;
}

void Schedule::leave(Unit& unit) {
  if (unit.kept || contains(held_, &unit)) return;
  const bool backward_follows = in_pass_ && !in_backward_;
  if (backward_follows && plan_.reshard_after_forward == 0) return;
  if (!contains(left_, &unit)) left_.push_back(&unit);
  if (backward_follows && group_ != nullptr)
    release_to_group(unit, *group_);
  else
    release(unit);
  if (narrate_) say("releases", unit, unit.in_group ? " but for a part" : "");
}

void Schedule::start_gather(Unit& unit, bool ahead) {
  const Context in("unit ", unit.label());
  if (narrate_) say(ahead ? "gathers ahead" : "gathers", unit, sources_text(unit));
  if (unit.in_group)
    gather_group_start(unit, *group_);
  else
    gather_start(unit, mesh_.shard(), traffic_);
  unit.prefetched = ahead;
  ++counters_.gathers;
  counters_.prefetched += ahead ? 1 : 0;
  int64_t gathered = 0;
  for (const auto& u : units_)
    if (!u->kept && u->state != Unit::State::released) ++gathered;
  counters_.most_gathered = std::max(counters_.most_gathered, gathered);
}

void Schedule::ensure(Unit& unit) {
  waiting([&] { gather_wait(unit); });
}

std::vector<Unit*> Schedule::next_units() const {
  std::vector<Unit*> next;
  const auto take = [&](Unit* unit, int64_t depth, const std::vector<std::string>& only) {
    if (static_cast<int64_t>(next.size()) >= depth) return false;
    if (!only.empty() && std::find(only.begin(), only.end(), unit->label()) == only.end())
      return true;
    if (unit != current_ && !contains(next, unit)) next.push_back(unit);
    return true;
  };
  const auto backwards_from = [&](int64_t at) {
    for (int64_t i = at - 1; i >= 0; --i)
      if (!take(trace_[static_cast<size_t>(i)], plan_.prefetch.backward,
                plan_.prefetch.backward_units))
        return;
  };
  if (in_backward_) {
    backwards_from(position_);
    return next;
  }
  for (auto i = static_cast<size_t>(position_ + 1); i < order_.size(); ++i)
    if (!take(order_[i], plan_.prefetch.forward, plan_.prefetch.forward_units)) return next;
  // Forward is past the last unit: backward begins with it.
  if (in_pass_ && current_ != nullptr && current_->kept && next.empty() && !trace_.empty())
    backwards_from(static_cast<int64_t>(trace_.size()));
  return next;
}

void Schedule::prefetch() {
  const std::vector<Unit*> next = next_units();
  int64_t bytes = 0;
  for (const auto& unit : units_) {
    if (unit->kept || unit->state == Unit::State::released) continue;
    // What was expected and did not come makes room.
    const bool keeps = plan_.reshard_after_forward == 0 && !unit->prefetched;
    if (unit.get() != current_ && !contains(leaving_, unit.get()) && !keeps &&
        !contains(next, unit.get()) && !contains(held_, unit.get())) {
      counters_.unused += unit->prefetched ? 1 : 0;
      release(*unit);
      continue;
    }
    bytes += unit->gathered_bytes;
  }
  for (Unit* unit : next) {
    if (unit->state != Unit::State::released) continue;
    if (bytes + unit->gathered_bytes > plan_.prefetch.bytes) return;
    bytes += unit->gathered_bytes;
    start_gather(*unit, true);
  }
}

void Schedule::deliver(Unit& unit, UnitParameter& parameter, Tensor whole) {
  end_after_backward();
  add_whole(parameter, std::move(whole));
  parameter.delivered = true;
  if (!sync_) return;
  for (const auto& p : unit.parameters)
    if (p.trainable() && !p.delivered) return;
  start_reduction(unit);
}

void Schedule::start_reduction(Unit& unit) {
  finish_reduction();
  const Context in("unit ", unit.label());
  reduction_ = reduce_start(unit, mesh_, plan_.reduce);
  counters_.exposed_s += reduction_->waited_s;
  if (narrate_) say("reduces", unit, ": gradients become sums over the ranks");
}

void Schedule::finish_reduction() {
  if (!reduction_) return;
  int64_t& before = reduction_->unit->reductions;
  waiting([&] { reduce_finish(*reduction_, plan_.accumulate_order, before); });
  ++before;
  reduction_.reset();
}

void Schedule::finish_gradients() {
  check(held_.empty(),
        "unshard() is in place, and what it gathered would miss the step; call "
        "reshard() before");
  if (std::exchange(unreduced_, false)) {
    for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit)
      if ((*unit)->trainable()) start_reduction(**unit);
  }
  finish_reduction();
  for (const auto& unit : units_) {
    for (auto& p : unit->parameters) {
      if (plan_.accumulate_order == AccumulateOrder::tree) join_tree(p, unit->reductions);
      // Of a backward pass that ended with an error.
      p.whole_grad = {};
      p.delivered = false;
    }
    unit->reductions = 0;
  }
  ends_after_backward_ = false;
  release_all();
  // The others may still read this rank's parts, which the optimizer writes next.
  waiting([&] { mesh_.world().barrier({"before the step"}); });
}

void Schedule::release_all() {
  current_ = nullptr;
  leaving_.clear();
  position_ = -1;
  in_pass_ = false;
  for (const auto& unit : units_) {
    if (unit->state != Unit::State::released && !contains(held_, unit.get())) {
      counters_.unused += unit->prefetched ? 1 : 0;
      waiting([&] { release(*unit); });
    }
    forget_group(*unit);  // backward may not have read all that forward left
  }
}

void Schedule::hold(Unit& unit) {
  if (contains(held_, &unit)) return;
  held_.push_back(&unit);
  if (!unit.gathers()) return;
  if (unit.state == Unit::State::released) start_gather(unit, false);
  ensure(unit);
}

void Schedule::release_hold(Unit& unit) {
  std::erase(held_, &unit);
  if (unit.state == Unit::State::released || &unit == current_) return;
  release(unit);
}

std::string Schedule::sources_text(const Unit& unit) const {
  if (unit.in_group)
    return detail::concat(": what forward left in the group of ", group_->size(), " ranks");
  const int mine = mesh_.shard().rank();
  const int first = mesh_.world().rank() - mine;  // of this replica
  std::string text;
  for (const auto& p : unit.parameters) {
    if (!p.is_sharded()) continue;
    text += (text.empty() ? ": " : "; ") + p.name;
    for (int r = 0; r < mesh_.shards(); ++r) {
      const int64_t rows = p.cut.size(r), begin = p.cut.begin(r);
      if (rows == 0) continue;
      text += begin == 0 ? "" : ",";
      text += rows == 1 ? detail::concat(p.dim == 0 ? " row " : " column ", begin)
                        : detail::concat(p.dim == 0 ? " rows " : " columns ", begin, "-",
                                         begin + rows - 1);
      text += r == mine ? " of its own" : detail::concat(" from rank ", first + r);
    }
  }
  return text;
}

void Schedule::say(const char* does, const Unit& unit, const std::string& more) const {
  narrate_(detail::concat("rank ", mesh_.world().rank(), ' ', does, ' ', unit.label(), more));
}

ScheduleCounters Schedule::take_counters() { return std::exchange(counters_, {}); }

template <class Body>
void Schedule::waiting(const Body& body) {
  const double begin_s = steady_seconds();
  body();
  counters_.exposed_s += steady_seconds() - begin_s;
}

}  // namespace sherd
