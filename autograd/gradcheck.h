// Gradcheck: holds backward to finite differences, so an op can be tested without a second one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/tape.h"

namespace sherd {

struct GradcheckOptions {
  /// Of the central difference, relative to max(1, |x|).
  double step = 1e-5;
  /// Allowed: absolute + relative · the largest gradient of that input.
  double relative = 1e-7;
  double absolute = 1e-8;
  /// Inputs of more elements are checked along `directions` random directions, not per element.
  int64_t max_elements = 400;
  int directions = 4;
};

struct GradcheckReport {
  bool ok = true;
  /// Largest error ÷ what was allowed.
  double worst = 0;
  /// The worst element: input, index, backward's value and the difference quotient.
  std::string text;
};

/// Compares d(Σ r · f(inputs))/d(input), r fixed in [-1, 1], with central differences for every
/// input. Inputs are f64; those that f needs unchanged (indices) are captured by f. Runs f twice an
/// element, on cpu
/// throws usage if an input is not f64, or f's output is not
GradcheckReport gradcheck(Tape& tape,
                          const std::function<Variable(const std::vector<Variable>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace sherd
