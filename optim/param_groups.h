// Which parameters decay and at what rate each learns, decided by name and original shape.
// Invariant: a parameter's shape here is that of the whole parameter, so sharding changes no group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace sherd {

/// A parameter as the model defines it.
struct ParamInfo {
  std::string name;
  Shape shape;  ///< before any sharding
};

/// What one group of parameters is updated with.
struct ParamRule {
  std::string pattern;  ///< of names: * any text (dots too), ? one character
  double weight_decay = 0;
  double lr_scale = 1;
};

struct ParamGroupOptions {
  double weight_decay = 0;            ///< of parameters that no rule names
  std::vector<ParamRule> rules = {};  ///< the first that matches holds, whatever the shape
};

/// The group of each parameter, in the order given. Without a matching rule: no decay for fewer
/// than two dims (biases, norms' weights, scalars) or a name that ends in "bias", else
/// options.weight_decay.
struct ParamGroup {
  std::string reason;  ///< "rule *.wte.weight", "fewer than 2 dims", "bias", "the rest"
  double weight_decay = 0;
  double lr_scale = 1;
  std::vector<ParamInfo> parameters;
};

/// Only groups that have parameters. Throws usage for a rule that matches no parameter (a
/// misspelling) or has a negative number.
std::vector<ParamGroup> param_groups(const std::vector<ParamInfo>& parameters,
                                     const ParamGroupOptions& options);

/// The group that holds `name`; throws usage if none does.
const ParamGroup& group_of(const std::vector<ParamGroup>& groups, const std::string& name);

/// For --print-param-groups: a line for each group with its sums, and one for each parameter.
std::string param_group_table(const std::vector<ParamGroup>& groups);

}  // namespace sherd
