#include "nn/module.h"

#include <fnmatch.h>

#include <unordered_map>

#include "base/error.h"

namespace sherd {

namespace {

class Collector final : public ModuleVisitor {
 public:
  void operator()(const std::string& name, Parameter& parameter) override {
    check(static_cast<bool>(parameter),
          "a module lists a parameter that it does not have:", prefix_ + name);
    add(prefix_ + name, parameter);
  }
  void operator()(const std::string& name, Module& child) override {
    const std::string before = prefix_;
    prefix_ += name + '.';
    child.fields(*this);
    prefix_ = before;
  }
  using ModuleVisitor::operator();

  std::vector<NamedParameter> take() { return std::move(found_); }

 private:
  void add(const std::string& name, const Parameter& parameter) {
    const auto [named, is_new_name] = by_name_.try_emplace(name, &parameter.state());
    check(is_new_name || named->second == &parameter.state(),
          "two parameters of a module have one name:", name);
    if (!is_new_name) return;
    const auto [place, is_new] = places_.try_emplace(&parameter.state(), found_.size());
    if (is_new)
      found_.push_back({name, parameter, {}});
    else
      found_[place->second].aliases.push_back(name);
  }

  std::string prefix_;
  std::vector<NamedParameter> found_;
  std::unordered_map<std::string, const VariableState*> by_name_;
  std::unordered_map<const VariableState*, size_t> places_;
};

bool matches(const std::string& pattern, const NamedParameter& p) {
  if (fnmatch(pattern.c_str(), p.name.c_str(), 0) == 0) return true;
  for (const auto& alias : p.aliases)
    if (fnmatch(pattern.c_str(), alias.c_str(), 0) == 0) return true;
  return false;
}

int64_t set_frozen(Module& module, std::string_view pattern, bool frozen) {
  const std::string glob(pattern);
  const auto all = parameters(module);
  int64_t matched = 0;
  for (const auto& p : all) {
    if (!matches(glob, p)) continue;
    p.parameter.set_frozen(frozen);
    ++matched;
  }
  check(matched > 0, "no parameter's name matches the pattern", glob, "of", all.size(),
        "parameters, the first", all.empty() ? "" : all[0].name);
  return matched;
}

}  // namespace

std::vector<NamedParameter> parameters(Module& module) {
  Collector collector;
  module.fields(collector);
  return collector.take();
}

void name_parameters(Module& module) {
  for (const auto& p : parameters(module)) p.parameter.set_name(p.name);
}

ParameterCounts count_parameters(Module& module) {
  ParameterCounts counts;
  for (const auto& p : parameters(module)) {
    const int64_t n = p.parameter.value().numel();
    counts.total += n;
    if (!p.parameter.frozen()) counts.trainable += n;
  }
  return counts;
}

int64_t freeze(Module& module, std::string_view pattern) {
  return set_frozen(module, pattern, true);
}

int64_t unfreeze(Module& module, std::string_view pattern) {
  return set_frozen(module, pattern, false);
}

}  // namespace sherd
