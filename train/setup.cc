#include "train/setup.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/machine.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

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

}  // namespace

RuntimePtr make_runtime(const RunSection& run, std::int64_t ranks) {
  RuntimeOptions options;
  options.threads = static_cast<int>(
      run.threads_per_rank.value_or(std::max<std::int64_t>(1, usable_cores() / ranks)));
  if (run.isa != "auto") options.isa = parse_isa(run.isa);
  options.memory_limit = run.memory_limit ? run.memory_limit->count : 0;
  return Runtime::create(options);
}

Gpt2Config gpt2_config(const RunConfig& config, std::int64_t vocab) {
  const ModelSection& m = config.model;
  return {
      .layers = m.layers,
      .heads = m.heads,
      .channels = m.d_model,
      .hidden = m.num_ff(),
      .vocab = vocab,
      .context = m.context,
      .dropout = m.dropout,
      .tied = m.tied,
      .recompute = config.train.recompute.front() == "block" ? Recompute::block : Recompute::none,
      .dtype = config.precision.compute == "bf16" ? DType::bf16 : DType::f32};
}

std::unique_ptr<Optimizer> make_optimizer(const OptimSection& optim) {
  if (optim.name == "sgd") return std::make_unique<Sgd>(SgdOptions{.momentum = optim.momentum});
  return std::make_unique<AdamW>(
      AdamWOptions{.beta1 = optim.betas[0], .beta2 = optim.betas[1], .eps = optim.eps});
}

LrSchedule make_schedule(const RunConfig& config) {
  return {.shape = parse_lr_shape(config.optim.schedule),
          .lr = config.optim.lr,
          .min_lr = config.optim.min_lr,
          .warmup = config.optim.warmup,
          .steps = config.run.steps};
}

std::vector<ParamGroup> group_parameters(const std::vector<NamedParameter>& parameters,
                                         const OptimSection& optim) {
  std::vector<ParamInfo> trainable;
  for (const auto& p : parameters)
    if (!p.parameter.frozen()) trainable.push_back({p.name, p.parameter.shape()});
  return param_groups(trainable, {.weight_decay = optim.weight_decay, .rules = {}});
}

std::vector<Slot> make_slots(const std::vector<NamedParameter>& parameters,
                             const std::vector<ParamGroup>& groups, const Optimizer& optimizer) {
  std::vector<Slot> slots;
  for (const auto& p : parameters) {
    if (p.parameter.frozen()) continue;
    const ParamGroup& group = group_of(groups, p.name);
    Slot& slot = slots.emplace_back();
    slot.name = p.name;
    slot.value = p.parameter.value();
    slot.weight_decay = group.weight_decay;
    slot.lr_scale = group.lr_scale;
    optimizer.prepare(slot);
  }
  return slots;
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
