// Trainer: the loop that runs a configuration.
// A step = micro-batches forward and backward, the norm of all gradients, one optimizer pass.
// Invariant: weights, moments, losses and positions are a function of the configuration alone: not
// of the number of threads, of evaluation, of what is shown, or of where the run was interrupted.
// On N ranks each runs a Trainer, in step; rank 0 alone writes to the run's folder.
// Legend: B samples a micro-batch, T context, k = 0, 1, … a rank's micro-batches of a step,
// g = k N + rank the same over all ranks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "checkpoint/run_state.h"
#include "dist/comm/thread_ranks.h"
#include "dist/fully_shard.h"
#include "nn/models/language_model.h"
#include "train/dataset.h"
#include "train/find_checkpoint.h"
#include "train/health.h"
#include "train/metrics.h"
#include "train/run_folder.h"
#include "train/sampler.h"
#include "train/setup.h"

namespace sherd {

/// What does not change a result.
struct TrainerOptions {
  /// "": a new run; "latest": go on with the run in run.out; else a checkpoint or a run's folder.
  std::string resume;
  /// Where prepared data is kept, such as default_cache_folder().
  std::string cache;
  ProgressMode progress = ProgressMode::quiet;  ///< of rank 0; the others' is plain or quiet
  /// The first so many steps of run() tell, line by line, what happens to units.
  std::int64_t narrate = 0;
  /// Asked after each step; true: save and leave run().
  std::function<bool()> should_stop;
};

/// Not thread-safe. What it made stays usable until it dies.
class Trainer {
 public:
  /// Locks run.out, opens the data, makes or loads the model and the optimizer's state.
  /// throws usage for data or a folder that cannot be used, or a checkpoint of another model or
  /// vocabulary; io
  Trainer(const RunConfig& config, const TrainerOptions& options);
  /// The same for one of config.dist.ranks ranks; all of them make one at once.
  Trainer(const RunConfig& config, const TrainerOptions& options, Rank& rank);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Steps up to run.steps or until it should stop, with evaluation, metrics, checkpoints, and
  /// progress shown on `out`. throws numeric, naming the op, when a loss or gradient is not finite;
  /// nothing is saved then
  void run(std::ostream& out);

  /// One optimizer step and nothing else.
  StepMetrics step();
  /// Mean loss over train.eval_batches micro-batches of validation data, the same each time.
  double evaluate();
  /// Writes a checkpoint.
  void save();

  std::int64_t steps_done() const { return state_.step; }
  bool finished() const { return state_.step >= config_.run.steps; }

  int rank() const { return comm_.rank(); }
  const RunConfig& config() const { return config_; }
  const Dataset& data() const { return data_; }
  const RuntimePtr& runtime() const { return runtime_; }
  LanguageModel& model() { return *model_; }
  const std::vector<ParamGroup>& groups() const { return groups_; }
  const std::vector<Slot>& slots() const { return slots_->slots(); }
  ShardedModule& sharded() { return *sharded_; }
  const ShardPlan& plan() const { return plan_; }
  /// Tokens [B, T + 1] of this rank's micro-batch k of the next step.
  std::vector<std::int32_t> micro_batch(std::int64_t k) const;
  std::int64_t num_micro_batches() const;
  std::int64_t samples_per_epoch() const { return sampler_.samples_per_epoch(); }
  /// The instant of the run, so far, at which most was allocated.
  const MemoryPeak& peak() const { return peak_; }
  /// What a resumed run does otherwise than before.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Loss {
    double sum = 0;
    std::int64_t tokens = 0;
  };
  /// Where a Trainer of one rank has its group.
  struct Place {
    std::unique_ptr<Communicator> solo;
    RuntimePtr runtime;
    Communicator* comm;
  };
  Trainer(const RunConfig& config, const TrainerOptions& options, Place place);

  bool resumed() const { return !checkpoint_.path.empty(); }
  void resume(const RunState& saved);
  std::uint64_t seed() const { return static_cast<std::uint64_t>(config_.run.seed); }
  bool first_rank() const { return comm_.rank() == 0; }
  /// Of every parameter, on every rank.
  std::vector<NamedTensor> whole_model();
  std::vector<Slot> whole_slots();
  void load(const std::string& path);
  Loss forward_backward(std::int64_t k);
  /// The losses of all ranks, summed in the tree of design section 3: by micro-batch g.
  Loss sum_losses(std::span<const Loss> mine);
  LossResult loss_of(const std::vector<std::int32_t>& rows, const ForwardOptions& options);
  /// Metrics of all ranks; whether one of them is asked to stop.
  bool share_counters(StepMetrics& metrics);
  [[noreturn]] void explain_not_finite(std::int64_t begin, std::int64_t end,
                                       const std::string& what);
  void take_peak(StepMetrics& metrics);
  /// Tells `lines` what happens from now on; empty: nobody is told.
  void narrate_to(std::function<void(const std::string&)> lines);
  template <class... A>
  void tell(const A&... a) const {
    if (narrate_) narrate_(detail::concat("rank ", rank(), ' ', a...));
  }
  void show(const StepMetrics& metrics, Progress& progress);
  double backward_scale_now() const { return backward_scale(config_, loss_scale_.value()); }

  const RunConfig config_;
  const TrainerOptions options_;
  const FoundCheckpoint checkpoint_;  // that the run goes on from; no path: it is new
  const std::unique_ptr<Communicator> solo_;
  const RuntimePtr runtime_;
  Communicator& comm_;
  std::optional<RunFolder> folder_;  // of rank 0
  RunState state_;
  Tape tape_;
  Dataset data_;
  Sampler sampler_;
  std::unique_ptr<LanguageModel> model_;
  std::vector<NamedParameter> parameters_;
  std::vector<ParamGroup> groups_;
  std::unique_ptr<Optimizer> optimizer_;
  LrSchedule schedule_;
  const ShardPlan plan_;
  DeviceMesh mesh_;
  std::unique_ptr<ShardedModule> sharded_;
  std::optional<ShardedSlots> slots_;
  LossScale loss_scale_;
  std::function<void(const std::string&)> narrate_;
  TrafficBytes received_{};  // up to the last step
  double gemm_rate_ = 0;
  MemoryPeak peak_;
  Health health_;
  std::vector<std::string> warnings_;
};

}  // namespace sherd
