// A body run on several thread ranks, for tests.
#pragma once

#include <functional>

#include "dist/comm/thread_ranks.h"

namespace sherd::test {

/// Runs `body` on `ranks` thread ranks; throws the first error. A rendezvous that never ends fails
/// after 60 s.
inline void on_ranks(int ranks, const std::function<void(Rank&)>& body) {
  run_thread_ranks({.ranks = ranks, .timeout_s = 60}, body);
}

}  // namespace sherd::test
