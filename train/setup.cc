#include "train/setup.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "base/ceil_log2.h"
#include "dist/auto_group.h"
#include "dist/reduce.h"
#include "optim/adamw.h"
#include "optim/lion.h"
#include "optim/sgd.h"
#include "tensor/gemm.h"

namespace sherd {
namespace {

/// What write_toml prints: a key a line, sections in [].
std::map<std::string, std::string> settings(const std::string& toml) {
  std::map<std::string, std::string> values;
  std::istringstream lines(toml);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find(" = ");
    if (line.starts_with('['))
      section = line.substr(1, line.find(']') - 1) + '.';
    else if (equals != std::string::npos)
      values[section + line.substr(0, equals)] = line.substr(equals + 3);
  }
  return values;
}

RuntimeOptions runtime_options(const RunSection& run) {
  RuntimeOptions options;
  options.threads = static_cast<int>(run.threads_per_rank.value_or(0));
  if (run.isa != "auto") {
    options.isa = parse_isa(run.isa);
    limit_gemm_isa(*options.isa);
  }
  options.memory_limit = run.memory_limit ? run.memory_limit->count : 0;
  return options;
}

GroupModel group_model(const RunConfig& config, const ShardPlan& plan) {
  GroupModel model{.shards = static_cast<int>(config.dist.ranks) / plan.replicas,
                   .prefetch = std::min<std::int64_t>(
                       std::max(plan.prefetch.forward, plan.prefetch.backward), 100)};
  if (config.dist.link) {
    model.bytes_per_s = config.dist.link->gbps * 1e9 / 8;
    model.latency_s += config.dist.link->latency_us * 1e-6;
  }
  // The rest is for what every rank holds anyway, and for activations.
  if (config.run.memory_limit) model.cap_bytes = config.run.memory_limit->count / 4;
  return model;
}

}  // namespace

RuntimePtr make_runtime(const RunSection& run) {
  return make_rank_runtime({.runtime = runtime_options(run)}, 1);
}

RanksOptions rank_options(const RunConfig& config) {
  RanksOptions options{.ranks = static_cast<int>(config.dist.ranks),
                       .runtime = runtime_options(config.run),
                       .timeout_s = config.dist.timeout_s,
                       .ranks_per_host = static_cast<int>(config.dist.ranks_per_host)};
  if (config.dist.link) options.link = Link{config.dist.link->gbps, config.dist.link->latency_us};
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(const RunConfig& config) {
  const OptimSection& optim = config.optim;
  if (optim.name == "sgd")
    return std::make_unique<Sgd>(
        SgdOptions{.momentum = optim.momentum, .nesterov = optim.nesterov});
  if (optim.name == "lion")
    return std::make_unique<Lion>(LionOptions{.beta1 = optim.betas[0], .beta2 = optim.betas[1]});
  return std::make_unique<AdamW>(AdamWOptions{.beta1 = optim.betas[0],
                                              .beta2 = optim.betas[1],
                                              .eps = optim.eps,
                                              .moments = parse_dtype(config.precision.moments),
                                              .seed = static_cast<std::uint64_t>(config.run.seed)});
}

ShardPlan make_plan(const RunConfig& config, const std::vector<NamedParameter>& all) {
  const DistSection& d = config.dist;
  ShardPlan plan = parse_strategy(d.strategy, static_cast<int>(d.ranks));
  // A key that is set to other than its default holds over what the strategy's name stands for.
  const DistSection defaults;
  plan.replicas = static_cast<int>(d.num_replicas());
  if (d.reshard_after_forward != defaults.reshard_after_forward) {
    const bool* flag = std::get_if<bool>(&d.reshard_after_forward);
    plan.reshard_after_forward =
        flag != nullptr ? (*flag ? 1 : 0)
                        : static_cast<int>(std::get<std::int64_t>(d.reshard_after_forward));
  }
  if (d.prefetch != defaults.prefetch) {
    if (const auto* depth = std::get_if<std::int64_t>(&d.prefetch)) {
      plan.prefetch.forward = plan.prefetch.backward = *depth;
    } else if (const auto* both = std::get_if<PrefetchSection>(&d.prefetch)) {
      const auto set = [](const auto& from, std::int64_t& depth, std::vector<std::string>& only) {
        depth = 1;
        if (const auto* n = std::get_if<std::int64_t>(&from))
          depth = *n;
        else
          only = std::get<std::vector<std::string>>(from);
      };
      set(both->forward, plan.prefetch.forward, plan.prefetch.forward_units);
      set(both->backward, plan.prefetch.backward, plan.prefetch.backward_units);
    } else {
      plan.prefetch.forward = plan.prefetch.backward = 0;
    }
  }
  if (d.prefetch_bytes) plan.prefetch.bytes = d.prefetch_bytes->count;
  if (d.resident_below) plan.resident_below = d.resident_below->count;
  if (d.sync != "auto") plan.sync = d.sync == "every" ? Sync::every : Sync::last;
  if (d.group == "auto") {
    AutoGroups groups = auto_groups(all, group_model(config, plan));
    plan.unit_of = std::move(groups.unit_of);
    plan.why_units = std::move(groups.why);
  } else {
    plan.unit_of = parse_grouping(d.group, all);
  }
  for (const auto& p : d.placement) plan.placements.push_back({p.match, static_cast<int>(p.dim)});
  plan.reduce = parse_dtype(config.precision.reduce);
  if (config.train.accumulate_order == "tree") plan.accumulate_order = AccumulateOrder::tree;
  return plan;
}

LossScale make_loss_scale(const PrecisionSection& precision) {
  return LossScale({.start = precision.first_loss_scale(),
                    .dynamic = precision.dynamic_loss_scale(),
                    .window = precision.loss_scale_window,
                    .floor = precision.dynamic_loss_scale() ? precision.loss_scale_floor
                                                            : precision.first_loss_scale()});
}

double backward_scale(const RunConfig& config, double loss_scale) {
  if (config.precision.compute != "f16") return loss_scale;
  return std::ldexp(loss_scale, -ceil_log2(static_cast<std::uint64_t>(config.train.micro_batch *
                                                                      config.model.context)));
}

std::vector<std::string> scaling_rules(const RunConfig& config) {
  std::vector<std::string> lines;
  const double loss_scale = config.precision.first_loss_scale();
  const double scale = backward_scale(config, loss_scale);
  if (scale != 1 || config.precision.dynamic_loss_scale())
    lines.push_back(detail::concat(
        "backward starts from 2^", std::ilogb(scale), ": loss scale ", loss_scale,
        config.precision.dynamic_loss_scale()
            ? detail::concat(", halved when gradients overflow, doubled after ",
                             config.precision.loss_scale_window, " steps without")
            : "",
        config.precision.compute != "f16"
            ? ""
            : detail::concat(", by ", config.train.micro_batch * config.model.context,
                             " tokens a micro-batch, up to a power of two, smaller in f16"),
        "; undone exactly before the norm"));
  const auto ranks = static_cast<int>(config.dist.ranks);
  if (const int shift = wire_shift(parse_dtype(config.precision.reduce), ranks); shift > 0)
    lines.push_back(detail::concat("gradients are divided by ", 1 << shift,
                                   " before they travel in ", config.precision.reduce,
                                   ", and their sums over ", ranks, " ranks multiplied by it"));
  return lines;
}

std::vector<std::string> without_effect(const RunConfig& config) {
  const DistSection& d = config.dist;
  const DistSection defaults;
  std::vector<std::string> lines;
  const auto note = [&](const std::string& why, bool is_set, const std::string& key) {
    if (is_set) lines.push_back(key + " has no effect: " + why);
  };
  const bool sets_prefetch = d.prefetch != defaults.prefetch;
  const bool sets_reshard = d.reshard_after_forward != defaults.reshard_after_forward;
  const auto note_gathers = [&](const std::string& why) {
    note(why, sets_prefetch, "dist.prefetch");
    note(why, d.prefetch_bytes.has_value(), "dist.prefetch_bytes");
    note(why, sets_reshard, "dist.reshard_after_forward");
  };
  const auto note_shards = [&](const std::string& why) {
    note_gathers(why);
    note(why, d.resident_below.has_value(), "dist.resident_below");
    note(why, !d.placement.empty(), "dist.placement");
  };
  const ShardPlan plan = parse_strategy(d.strategy, static_cast<int>(d.ranks));
  const std::int64_t replicas = d.num_replicas();
  const bool is_tree = config.train.accumulate_order == "tree";
  if (d.ranks == 1) {
    const std::string alone = "there is one rank";
    note(alone, plan.row != kDdp, "dist.strategy");
    note_shards(alone);
    note(alone, d.group != defaults.group, "dist.group");
    note(alone, d.link.has_value(), "dist.link");
    note(alone, d.sync != "auto", "dist.sync");
  } else if (plan.row.parameters != Placement::shard) {
    note_shards(d.strategy + " does not shard parameters");
  } else if (replicas == d.ranks) {
    note_shards("each rank is a replica of its own");
  } else if (d.group == "model") {
    note_gathers("the whole model is one unit, gathered until backward is over");
  } else {
    const auto* k = std::get_if<std::int64_t>(&d.reshard_after_forward);
    note("there are as many shards", k != nullptr && *k == d.ranks / replicas,
         "dist.reshard_after_forward");
    note("nothing is gathered ahead",
         d.prefetch_bytes && sets_prefetch && d.prefetch == decltype(d.prefetch)(std::int64_t{0}),
         "dist.prefetch_bytes");
  }
  note(d.strategy + " has one replica",
       d.replicate != defaults.replicate && !d.strategy.starts_with("hsdp"), "dist.replicate");
  note("threads are on one host", d.ranks_per_host != 0 && d.engine != "mpi",
       "dist.ranks_per_host");
  if (d.ranks > 1)
    note("a step has one micro-batch",
         d.sync != "auto" && config.train.num_accumulate(d.ranks) == 1, "dist.sync");
  const bool last = d.sync == "auto" ? plan.sync == Sync::last : d.sync == "last";
  note(
      "gradients are reduced once, as the sum of a step's micro-batches; dist.sync = every "
      "reduces each",
      is_tree && last && config.train.num_accumulate(d.ranks) > 1, "train.accumulate_order");
  return lines;
}

LrSchedule make_schedule(const RunConfig& config) {
  return {.shape = parse_lr_shape(config.optim.schedule),
          .lr = config.optim.lr,
          .min_lr = config.optim.min_lr,
          .warmup = config.optim.warmup,
          .steps = config.run.steps,
          .decay = config.optim.decay.value_or(config.run.steps / 10)};
}

std::vector<ParamGroup> group_parameters(const std::vector<NamedParameter>& parameters,
                                         const OptimSection& optim) {
  std::vector<ParamInfo> trainable;
  for (const auto& p : parameters)
    if (!p.parameter.frozen()) trainable.push_back({p.name, p.parameter.shape()});
  return param_groups(trainable, {.weight_decay = optim.weight_decay, .rules = {}});
}

ShardedSlots make_slots(ShardedModule& sharded, const std::vector<ParamGroup>& groups,
                        const Optimizer& optimizer) {
  ShardedSlots all(sharded);
  for (Slot& slot : all.slots()) {
    const ParamGroup& group = group_of(groups, slot.name);
    slot.weight_decay = group.weight_decay;
    slot.lr_scale = group.lr_scale;
    optimizer.prepare(slot);
  }
  return all;
}

std::vector<std::string> changed_keys(const std::string& before, const std::string& now) {
  auto old_values = settings(before), new_values = settings(now);
  std::set<std::string> keys;
  for (const auto* values : {&old_values, &new_values})
    for (const auto& [key, value] : *values) keys.insert(key);
  std::vector<std::string> changes;
  for (const auto& key : keys) {
    if (key == "run.name" || key == "run.out") continue;
    const std::string was = old_values[key], is = new_values[key];
    if (was == is) continue;
    changes.push_back(key + " = " + (is.empty() ? "(not set)" : is) + ", was " +
                      (was.empty() ? "(not set)" : was));
  }
  return changes;
}

}  // namespace sherd
