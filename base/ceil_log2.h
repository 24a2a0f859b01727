// The least power of two that is no less than a number.
#pragma once

#include <bit>
#include <cstdint>

namespace sherd {

/// The least p with 2^p >= n, for n >= 1.
constexpr int ceil_log2(std::uint64_t n) { return static_cast<int>(std::bit_width(n - 1)); }

}  // namespace sherd
