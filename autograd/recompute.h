// Recompute: run a function again in backward instead of keeping what it would save.
// Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".
#pragma once

#include <functional>
#include <vector>

#include "autograd/tape.h"

namespace sherd {

/// function(inputs), of which only the inputs are saved; backward runs the function once more,
/// recording. The function must be repeatable (random numbers here are counter-based) and use
/// parameters freely; other variables that want gradients must come in through `inputs`. `name`
/// appears in errors.
Variable recompute(const char* name, std::vector<Variable> inputs,
                   std::function<Variable(const std::vector<Variable>&)> function);

}  // namespace sherd
