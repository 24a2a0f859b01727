// Ranks as processes that mpirun started, on one host. MPI is where they find each other; tensors
// are read straight from the other processes' memory, and waits sleep, as between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "dist/comm/local_comm.h"
#include "dist/comm/rank.h"
#include "tensor/isa.h"

namespace sherd {

struct MpiRanksOptions {
  int threads_per_rank = 1;
  std::optional<Isa> isa = std::nullopt;
  int64_t memory_limit = 0;  ///< bytes a rank; 0: none
  bool poison = false;       ///< for tests: see AllocatorOptions
  double timeout_s = 300;
  std::optional<Link> link = std::nullopt;
};

/// Whether this build has Open MPI.
bool has_mpi_ranks();

/// Runs `body` in this process, as the rank that mpirun made it (alone without mpirun); once in a
/// process, and all ranks do. Returns when all ranks have ended. When one throws, exits or is
/// killed, the others' waits end and the error with that cause is thrown in each of them; MPI is
/// then left as it is, so mpirun ends whoever does not end by itself when this process exits.
/// Throws usage in a build without Open MPI, and where ranks are on different hosts.
void run_mpi_ranks(const MpiRanksOptions& options, const std::function<void(Rank&)>& body);

}  // namespace sherd
