// fully_shard: a module's parameters, gradients and optimizer state in parts over ranks, while the
// module is used as before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/device_mesh.h"
#include "dist/schedule.h"
#include "dist/shard_plan.h"
#include "dist/sharded_tensor.h"
#include "nn/module.h"

namespace sherd {

/// A trainable parameter as its rank's optimizer sees it: local tensors only.
struct LocalParameter {
  std::string name;
  Shape shape;   ///< of the whole parameter
  Tensor value;  ///< what this rank updates
  Tensor grad;   ///< like value, f32 (f64); empty: nothing used the parameter in this step
  /// The part of grad whose rows this rank brings to the global norm, each row by one rank.
  Tensor norm_grad;
};

/// A sharded module. Used by its rank's thread; all ranks make the same calls in the same order.
/// The module, its tape and the mesh outlive it.
class ShardedModule {
 public:
  /// Blocks until all ranks are here, which may still read this rank's parts.
  ~ShardedModule();
  ShardedModule(const ShardedModule&) = delete;
  ShardedModule& operator=(const ShardedModule&) = delete;

  /// Each rank makes its own rows of the initial values (nn/init.h).
  void init(uint64_t seed);

  /// Whether the backward passes that come reduce gradients. With Sync::last, only the last of a
  /// step may: say false before the others. Where that one did not, finish_gradients() reduces.
  void set_sync(bool on);
  /// After the last backward of a step: gradients are sums over ranks and micro-batches, in
  /// trainable(). Blocks until all ranks are here.
  void finish_gradients();
  /// The trainable parameters, the same ones in each step; their gradients between
  /// finish_gradients() and finish_step().
  const std::vector<LocalParameter>& trainable() const { return trainable_; }
  /// After the optimizer wrote the values: replicated parameters are whole again on every rank, the
  /// gradients go. Blocks until all ranks are here.
  void finish_step();

  /// Gathers all parameters until reshard(), for use outside of forward and backward.
  void unshard();
  /// Releases what is gathered: after unshard(), or after forward passes without backward.
  void reshard();
  /// What gathers count as from now on (Traffic::eval in evaluation).
  void set_traffic(Traffic traffic);

  /// Parameter `name`, trainable or frozen, as it rests on the ranks.
  ShardedTensor value(const std::string& name) const;
  /// `local`, which lies over the ranks as what the optimizer updates of parameter `name` does: a
  /// value or gradient of trainable(), a moment.
  ShardedTensor state(const std::string& name, const Tensor& local) const;
  /// Writes value(name) from a whole; like init(), before or between steps. No communication: the
  /// ranks meet at a barrier before the next use.
  void set_value(const std::string& name, const Tensor& whole);

  /// The sum of norms' words over ranks, and their maximum: for grad_norm's NormExchange.
  std::function<void(std::span<int64_t>)> norm_sum() const;
  std::function<void(std::span<int64_t>)> norm_max() const;

  /// Payload that this rank received since the start, in all of the mesh's groups.
  TrafficBytes received() const;
  const std::vector<std::unique_ptr<Unit>>& units() const { return units_; }
  DeviceMesh& mesh() const { return mesh_; }
  ScheduleCounters take_counters() { return schedule_->take_counters(); }
  /// `narrate` is told, in words, what happens to units from now on; empty: nobody.
  void set_narrator(std::function<void(const std::string&)> narrate) {
    schedule_->set_narrator(std::move(narrate));
  }

 private:
  friend std::unique_ptr<ShardedModule> fully_shard(Module&, Tape&, DeviceMesh&, const ShardPlan&);
  class Guard;
  ShardedModule(Module& module, Tape& tape, DeviceMesh& mesh, const ShardPlan& plan);

  UnitParameter& find(const std::string& name) const;
  void after_values_changed();

  DeviceMesh& mesh_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<std::unique_ptr<Guard>> guards_;
  std::unique_ptr<Communicator> group_;
  std::unique_ptr<Schedule> schedule_;
  std::vector<LocalParameter> trainable_;
  std::vector<UnitParameter*> trainable_units_;
};

/// Shards `module` in place as `plan` says. Parameters that have bytes keep their values; those
/// made under DeferParameters have none until init() or set_value(). Memory: docs/sharding.md.
/// Throws usage where a tensor of a parameter is held by others: an optimizer is built from
/// trainable(), after this.
std::unique_ptr<ShardedModule> fully_shard(Module& module, Tape& tape, DeviceMesh& mesh,
                                           const ShardPlan& plan);

}  // namespace sherd
