// From a configuration to the objects that a run is made of.
// Invariant: what is made depends on the configuration alone, so a resumed run gets the same.
#pragma once

#include <memory>
#include <vector>

#include "dist/comm/ranks_options.h"
#include "optim/loss_scale.h"
#include "optim/lr_schedule.h"
#include "optim/param_groups.h"
#include "train/config.h"
#include "train/sharded_slots.h"

namespace sherd {

/// A runtime as [run] says; threads default to the usable cores.
/// throws usage for an instruction set that this machine does not have
RuntimePtr make_runtime(const RunSection& run);

/// Ranks with such runtimes, as [dist] says; those of a host divide its cores.
RanksOptions rank_options(const RunConfig& config);

std::unique_ptr<Optimizer> make_optimizer(const RunConfig& config);

/// [dist] with [precision]'s reduce dtype and [train]'s order; `all` are the model's parameters.
ShardPlan make_plan(const RunConfig& config, const std::vector<NamedParameter>& all);

LossScale make_loss_scale(const PrecisionSection& precision);

/// What backward starts from, a power of two: the loss scale; with f16 compute, whose gradients of
/// activations are f16, by the tokens of a micro-batch, rounded up to a power of two, smaller.
double backward_scale(const RunConfig& config, double loss_scale);

/// What is divided and multiplied where, a line each, for what is not plain f32.
std::vector<std::string> scaling_rules(const RunConfig& config);

/// What [dist] sets and has no effect in this run, a line each.
std::vector<std::string> without_effect(const RunConfig& config);

LrSchedule make_schedule(const RunConfig& config);

/// The groups of a model's trainable parameters.
std::vector<ParamGroup> group_parameters(const std::vector<NamedParameter>& parameters,
                                         const OptimSection& optim);

/// Their slots: each of its group, with the optimizer's state of this rank's part.
ShardedSlots make_slots(ShardedModule& sharded, const std::vector<ParamGroup>& groups,
                        const Optimizer& optimizer);

/// "optim.lr = 0.002, was 0.001" for keys in which two resolved configurations (TOML) differ, but
/// for the run's name and folder.
std::vector<std::string> changed_keys(const std::string& before, const std::string& now);

}  // namespace sherd
