#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace sherd {

void SamplingOptions::validate() const {
  check(std::isfinite(temperature) && temperature >= 0, "temperature: expected >= 0, got",
        temperature);
  check(top_k >= 0, "top-k: expected >= 0, got", top_k);
  check(top_p > 0 && top_p <= 1, "top-p: expected 0 < p <= 1, got", top_p);
}

std::int32_t choose_token(std::span<const float> logits, const SamplingOptions& options, double u) {
  check(!logits.empty(), "choose_token: there are no logits");
  for (const float x : logits)
    if (std::isnan(x)) fail_as(ErrorKind::numeric, "choose_token: a logit is not a number");
  const auto at = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (options.temperature == 0)
    return *std::max_element(ids.begin(), ids.end(),
                             [&](std::int32_t a, std::int32_t b) { return at(a) < at(b); });

  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::int32_t a, std::int32_t b) { return at(a) > at(b); });
  if (options.top_k > 0 && static_cast<std::size_t>(options.top_k) < ids.size())
    ids.resize(static_cast<std::size_t>(options.top_k));

  std::vector<double> weights;
  for (const std::int32_t id : ids)
    weights.push_back(std::exp((double{at(id)} - double{at(ids[0])}) / options.temperature));
  const auto total = [&] { return std::accumulate(weights.begin(), weights.end(), 0.0); };
  if (options.top_p < 1) {
    const double enough = options.top_p * total();
    double sum = 0;
    std::size_t kept = 0;
    while (kept < weights.size() && sum < enough) sum += weights[kept++];
    weights.resize(std::max<std::size_t>(kept, 1));
  }
  double left = u * total();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (left < weights[i]) return ids[i];
    left -= weights[i];
  }
  return ids[weights.size() - 1];  // u · total, rounded up
}

}  // namespace sherd
