// Ranks as threads of one process: no launcher, nothing to install.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "dist/comm/communicator.h"
#include "dist/comm/local_comm.h"
#include "dist/comm/rank.h"
#include "tensor/runtime.h"

namespace sherd {

struct ThreadRanksOptions {
  int ranks = 1;
  int threads_per_rank = 1;
  std::optional<Isa> isa = std::nullopt;
  int64_t memory_limit = 0;  ///< bytes a rank; 0: none
  bool poison = false;       ///< for tests: see AllocatorOptions
  double timeout_s = 300;
  std::optional<Link> link = std::nullopt;
};

/// Runs `body` on `ranks` threads, each with a runtime and the group of all, and waits for them.
/// When one throws, the others' waits end with that cause; the first error is thrown here, with its
/// rank in front.
void run_thread_ranks(const ThreadRanksOptions& options, const std::function<void(Rank&)>& body);

/// A group of one, for programs without ranks: calls run at once, on the caller's thread.
std::unique_ptr<Communicator> solo_communicator(const RuntimePtr& runtime);

}  // namespace sherd
