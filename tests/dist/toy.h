// What the cases share: chain.h, and a comparison.
#pragma once

#include "tests/dist/chain.h"
#include "third_party/catch2/test.h"

namespace sherd::test {

inline void check_close(const Trace& a, const Trace& b, double tolerance = 1e-5) {
  REQUIRE(a.losses.size() == b.losses.size());
  for (size_t i = 0; i < a.losses.size(); ++i) {
    CHECK(a.losses[i] == Approx(b.losses[i]).epsilon(tolerance));
    CHECK(a.norms[i] == Approx(b.norms[i]).epsilon(tolerance));
  }
}

}  // namespace sherd::test
