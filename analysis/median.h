#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sherd {

/// Of at least one number; of an even number of them the upper one in the middle.
inline double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<int64_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

}  // namespace sherd
