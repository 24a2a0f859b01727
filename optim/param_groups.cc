#include "optim/param_groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"

namespace sherd {

namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// The group of one parameter, without its parameters.
ParamGroup group_for(const ParamInfo& parameter, const ParamGroupOptions& options) {
  for (const ParamRule& rule : options.rules)
    if (matches(rule.pattern, parameter.name))
      return {"rule " + rule.pattern, rule.weight_decay, rule.lr_scale, {}};
  if (parameter.shape.size() < 2) return {"fewer than 2 dims", 0, 1, {}};
  if (parameter.name.ends_with("bias")) return {"bias", 0, 1, {}};
  return {"the rest", options.weight_decay, 1, {}};
}

void check_rules(const std::vector<ParamInfo>& parameters, const ParamGroupOptions& options) {
  check(options.weight_decay >= 0, "weight_decay must be ≥ 0, got", options.weight_decay);
  for (const ParamRule& rule : options.rules) {
    const Context in("parameter group ", rule.pattern);
    check(rule.weight_decay >= 0, "weight_decay must be ≥ 0, got", rule.weight_decay);
    check(rule.lr_scale >= 0, "lr_scale must be ≥ 0, got", rule.lr_scale);
    check(std::any_of(parameters.begin(), parameters.end(),
                      [&](const auto& p) { return matches(rule.pattern, p.name); }),
          "matches no parameter; --print-param-groups shows their names");
  }
}

}  // namespace

std::vector<ParamGroup> param_groups(const std::vector<ParamInfo>& parameters,
                                     const ParamGroupOptions& options) {
  check_rules(parameters, options);
  std::vector<ParamGroup> groups;
  for (const ParamInfo& parameter : parameters) {
    ParamGroup own = group_for(parameter, options);
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& g) { return g.reason == own.reason; });
    if (found == groups.end()) found = groups.insert(groups.end(), std::move(own));
    found->parameters.push_back(parameter);
  }
  return groups;
}

const ParamGroup& group_of(const std::vector<ParamGroup>& groups, const std::string& name) {
  for (const ParamGroup& group : groups)
    for (const ParamInfo& parameter : group.parameters)
      if (parameter.name == name) return group;
  fail("parameter is in no group:", name);
}

std::string param_group_table(const std::vector<ParamGroup>& groups) {
  std::ostringstream out;
  for (const ParamGroup& group : groups) {
    int64_t elements = 0;
    for (const ParamInfo& p : group.parameters) elements += p.shape.numel();
    out << "weight_decay " << group.weight_decay << ", lr_scale " << group.lr_scale << " ("
        << group.reason << "): " << group.parameters.size() << " parameters, " << elements
        << " elements\n";
    for (const ParamInfo& p : group.parameters) out << "  " << p.name << ' ' << p.shape << '\n';
  }
  return out.str();
}

}  // namespace sherd
