#include "analysis/overlap.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace sherd {

Overlap overlap_of(std::span<const CommSpan> spans, double exposed_s, double step_s) {
  // Exchanges are of a few words, and meant to be waited for.
  std::vector<double> seconds;
  for (const CommSpan& span : spans)
    if (std::string_view(span.op) != "exchange") seconds.push_back(span.end_s - span.begin_s);
  Overlap overlap{.exposed_s = exposed_s};
  for (const double s : seconds) overlap.comm_s += s;
  if (seconds.size() > 2)
    overlap.hideable_s =
        std::min(overlap.comm_s - seconds.front() - seconds.back(), step_s - exposed_s);
  return overlap;
}

}  // namespace sherd
