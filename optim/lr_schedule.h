// The learning rate as a function of the optimizer step, and of nothing else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "base/error.h"

namespace sherd {

enum class LrShape { constant, linear, cosine };

/// "constant", "linear" or "cosine"; throws usage otherwise.
inline LrShape parse_lr_shape(std::string_view name) {
  if (name == "constant") return LrShape::constant;
  if (name == "linear") return LrShape::linear;
  check(name == "cosine", "expected constant, linear or cosine as the schedule, got", name);
  return LrShape::cosine;
}

/// Ticks on optimizer steps only: micro-batches and skipped steps do not count.
struct LrSchedule {
  LrShape shape = LrShape::constant;
  double lr = 3e-4;    ///< peak
  double min_lr = 0;   ///< where linear and cosine end
  int64_t warmup = 0;  ///< steps of linear rise
  int64_t steps = 0;   ///< of the whole run, warm-up included; further ones are at min_lr

  /// The rate of step 0, 1, …: lr · (step+1) / (warmup+1) during warm-up, so that step `warmup` is
  /// the first at the peak; then from lr at `warmup` to min_lr at `steps`, along a line or half a
  /// cosine.
  double at(int64_t step) const {
    if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    if (shape == LrShape::constant) return lr;
    const int64_t length = steps - warmup;
    if (step - warmup >= length) return min_lr;
    const double done = static_cast<double>(step - warmup) / static_cast<double>(length);
    const double left =
        shape == LrShape::linear ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
    return min_lr + left * (lr - min_lr);
  }
};

}  // namespace sherd
