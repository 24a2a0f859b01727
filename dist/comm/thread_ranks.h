// Ranks as threads of one process: no launcher, nothing to install.
#pragma once

#include <functional>
#include <memory>

#include "dist/comm/communicator.h"
#include "dist/comm/rank.h"
#include "dist/comm/ranks_options.h"
#include "tensor/runtime.h"

namespace sherd {

/// Runs `body` on `options.ranks` threads, each with a runtime and the group of all, and waits for
/// them. When one throws, the others' waits end with that cause; the first error is thrown here,
/// with its rank in front.
void run_thread_ranks(const RanksOptions& options, const std::function<void(Rank&)>& body);

/// A group of one, for programs without ranks: calls run at once, on the caller's thread.
std::unique_ptr<Communicator> solo_communicator(const RuntimePtr& runtime);

}  // namespace sherd
