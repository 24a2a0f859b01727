// Schedule: when units are gathered, released and reduced. It learns what runs from the accesses to
// parameters' bytes, so models need not tell it:
//   a unit is gathered when one of its parameters is first read, and those after it ahead of time;
//   it is released when a parameter of another unit is read;
//   it is reduced when backward has made the last of its gradients.
// Invariants: gathered units ≤ prefetch + 1 beside kept ones; one reduction in flight beside the
// unit whose gradients are being made; nothing here changes a result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "dist/device_mesh.h"
#include "dist/reduce.h"
#include "dist/unit.h"

namespace sherd {

/// What happened since the counters were last taken.
struct ScheduleCounters {
  double exposed_s = 0;             ///< that the rank's thread waited for communication
  int64_t gathers = 0;              ///< of units
  int64_t prefetched = 0;           ///< of those, ahead of time
  int64_t unused = 0;               ///< gathered ahead and released unused
  int64_t most_gathered = 0;        ///< units at once, beside kept ones
  std::vector<std::string> reused;  ///< units that were gathered again within a direction
};

/// Used by its rank's thread.
class Schedule {
 public:
  /// `group`: of reshard_after_forward = k, else null. All of them outlive it.
  Schedule(Tape& tape, std::vector<std::unique_ptr<Unit>>& units, DeviceMesh& mesh,
           Communicator* group, const ShardPlan& plan);

  /// Units run in the order of `units`, until a pass has shown another one.
  void plan_order();
  /// A parameter of `unit` is read.
  void touch(Unit& unit);
  /// Backward made the gradient of one of the unit's parameters.
  void deliver(Unit& unit, UnitParameter& parameter, Tensor whole);

  /// Whether the next backward passes reduce (plan's Sync::last: only the last of a step does).
  void set_sync(bool on) { sync_ = on; }
  /// Gradients of all passes are at rest; begins a new step. Blocks.
  void finish_gradients();
  /// Releases every unit, the kept ones too.
  void release_all();
  /// Gathers `unit` until release_hold(), whatever runs.
  void hold(Unit& unit);
  void release_hold(Unit& unit);
  /// What gathers count as from now on.
  void set_traffic(Traffic traffic) { traffic_ = traffic; }

  ScheduleCounters take_counters();
  /// Is told what is done, in words: "rank 2 gathers blocks.3: up.weight rows 0-95 from rank 0, …".
  /// Empty: nobody.
  void set_narrator(std::function<void(const std::string&)> narrate) {
    narrate_ = std::move(narrate);
  }

 private:
  void begin_pass();
  void end_pass();
  void end_after_backward();
  void leave(Unit& unit);
  void start_gather(Unit& unit, bool ahead);
  void ensure(Unit& unit);
  void prefetch();
  std::vector<Unit*> next_units() const;
  void start_reduction(Unit& unit);
  void finish_reduction();
  template <class Body>
  void waiting(const Body& body);
  /// Which rows of the unit come from where.
  std::string sources_text(const Unit& unit) const;
  void say(const char* does, const Unit& unit, const std::string& more) const;

  Tape& tape_;
  std::vector<std::unique_ptr<Unit>>& units_;
  DeviceMesh& mesh_;
  Communicator* const group_;
  const ShardPlan plan_;

  std::vector<Unit*> order_;  // of first use in forward: planned, then seen
  std::vector<Unit*> trace_;  // the same of this pass
  std::vector<Unit*> left_;   // released in this direction of the pass
  Unit* current_ = nullptr;
  std::vector<Unit*> leaving_;  // released when the op that read them last is over
  std::vector<Unit*> held_;
  int64_t position_ = -1;  // in order_ (forward) or trace_ (backward) of the last unit not kept
  bool in_pass_ = false;
  uint64_t pass_ = 0;  // the tape's times_emptied() when it began
  bool in_backward_ = false;
  bool ends_after_backward_ = false;
  bool sync_ = true;
  bool unreduced_ = false;  // the last pass of this step did not reduce
  Traffic traffic_ = Traffic::all_gather;
  std::vector<Unit*> to_keep_;  // seen to be used again: kept from the next pass on
  std::optional<UnitReduction> reduction_;
  ScheduleCounters counters_;
  std::function<void(const std::string&)> narrate_;
};

}  // namespace sherd
