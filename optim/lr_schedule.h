// The learning rate as a function of the optimizer step, and of nothing else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "base/error.h"

namespace sherd {

enum class LrShape { constant, linear, cosine, wsd };

/// "constant", "linear", "cosine" or "wsd"; throws usage otherwise.
inline LrShape parse_lr_shape(std::string_view name) {
  if (name == "constant") return LrShape::constant;
  if (name == "linear") return LrShape::linear;
  if (name == "wsd") return LrShape::wsd;
  check(name == "cosine", "expected constant, linear, cosine or wsd as the schedule, got", name);
  return LrShape::cosine;
}

/// Ticks on optimizer steps only: micro-batches and skipped steps do not count.
struct LrSchedule {
  LrShape shape = LrShape::constant;
  double lr = 3e-4;    ///< peak
  double min_lr = 0;   ///< where all but constant end
  int64_t warmup = 0;  ///< steps of linear rise
  int64_t steps = 0;   ///< of the whole run, warm-up included; further ones are at min_lr
  int64_t decay = 0;   ///< wsd: the last steps, which fall to min_lr

  /// The rate of step 0, 1, …: lr · (step+1) / (warmup+1) during warm-up, so that step `warmup` is
  /// the first at the peak; then from lr at `warmup` to min_lr at `steps`, along a line or half a
  /// cosine. wsd (warm-up, stable, decay: Hu et al. 2024, "MiniCPM") stays at lr until the last
  /// `decay` steps, which fall along a line.
  double at(int64_t step) const {
    if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    if (shape == LrShape::constant) return lr;
    const int64_t begin = shape == LrShape::wsd ? std::max(warmup, steps - decay) : warmup;
    if (step >= steps) return min_lr;
    if (step < begin) return lr;
    const double done = static_cast<double>(step - begin) / static_cast<double>(steps - begin);
    const double left =
        shape == LrShape::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * done)) : 1 - done;
    return min_lr + left * (lr - min_lr);
  }
};

}  // namespace sherd
