#include "train/health.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace sherd {

std::optional<std::string> Health::remark(const StepMetrics& step) {
  char text[160];
  if (step.skipped) {
    std::snprintf(text, sizeof text,
                  "skipped: gradients overflowed at loss scale %.0f; it is halved",
                  step.loss_scale.value_or(1));
    return text;
  }
  std::optional<std::string> remark;
  if (norms_.size() >= kEnough) {
    std::vector<double> sorted(norms_.begin(), norms_.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    if (step.grad_norm > kSpike * *middle) {
      std::snprintf(text, sizeof text,
                    "gradient norm %.3g is %.1f times the median of the last %zu steps",
                    step.grad_norm, step.grad_norm / *middle, sorted.size());
      remark = text;
    }
  }
  norms_.push_back(step.grad_norm);
  if (norms_.size() > kRemembered) norms_.pop_front();
  return remark;
}

}  // namespace sherd
