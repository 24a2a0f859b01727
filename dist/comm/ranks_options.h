// RanksOptions: what ranks are made with, be they threads or processes.
#pragma once

#include <optional>

#include "tensor/runtime.h"

namespace sherd {

/// A slower link to imitate: a collective takes at least latency + received bytes / rate from when
/// all ranks are there.
struct Link {
  double gbps = 10;  ///< gigabits a second
  double latency_us = 0;
};

struct RanksOptions {
  int ranks = 1;  ///< as threads; of MPI ranks mpirun has said it
  /// Each rank's own. No threads (0): as many as the cores of its host divided among its ranks.
  RuntimeOptions runtime = {};
  double timeout_s = 300;  ///< after which a waiting rank gives up
  std::optional<Link> link = std::nullopt;
  /// MPI ranks: as if each so many were a host of their own, which tries out several hosts on one
  /// machine. 0: hosts are what they are.
  int ranks_per_host = 0;
};

/// A rank's runtime where `local` ranks are on its host.
RuntimePtr make_rank_runtime(const RanksOptions& options, int local);

}  // namespace sherd
