// Health: what is unusual about a step, in a line.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "train/metrics.h"

namespace sherd {

/// Sees every step of a run in order.
class Health {
 public:
  /// "gradient norm 12.1 is 8.2 times the median of the last 64 steps": more than kSpike times,
  /// once kEnough steps were seen; or that the step was skipped, and why. Nothing: it was as usual.
  std::optional<std::string> remark(const StepMetrics& step);

  static constexpr double kSpike = 5;
  static constexpr std::size_t kRemembered = 64;
  static constexpr std::size_t kEnough = 16;

 private:
  std::deque<double> norms_;  // of the last steps that were taken
};

}  // namespace sherd
