#include "optim/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sherd {

namespace {

constexpr double kLargest = 0x1p32;

bool power_of_two(double x) {
  int exponent = 0;
  return x > 0 && std::frexp(x, &exponent) == 0.5;
}

}  // namespace

LossScale::LossScale(const LossScaleOptions& options)
    : options_(options), state_{options.start, 0} {
  check(
      power_of_two(options.start) && power_of_two(options.floor) && options.floor <= options.start,
      "a loss scale and its floor are powers of two, the floor not above the start; got start",
      options.start, "floor", options.floor);
  check(options.window >= 1, "the window of a loss scale is at least one step, got",
        options.window);
}

void LossScale::step_taken() {
  if (!options_.dynamic || ++state_.clean_steps < options_.window) return;
  state_ = {std::min(2 * state_.value, kLargest), 0};
}

void LossScale::step_skipped() { state_ = {std::max(state_.value / 2, options_.floor), 0}; }

}  // namespace sherd
