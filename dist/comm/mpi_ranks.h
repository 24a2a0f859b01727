// Ranks as processes that mpirun started, on one host or several. MPI is where they find each
// other. On one host tensors are read straight from the other processes' memory, as between
// threads; between hosts they travel as messages. Waits sleep.
#pragma once

#include <functional>

#include "dist/comm/rank.h"
#include "dist/comm/ranks_options.h"

namespace sherd {

/// Whether this build has Open MPI.
bool has_mpi_ranks();

/// Runs `body` in this process, as the rank that mpirun made it (alone without mpirun); once in a
/// process, and all ranks do. Returns when all ranks have ended. When one throws, exits or is
/// killed, the others' waits end and the error with that cause is thrown in each of them; MPI is
/// then left as it is, so mpirun ends whoever does not end by itself when this process exits.
/// Throws usage in a build without Open MPI.
void run_mpi_ranks(const RanksOptions& options, const std::function<void(Rank&)>& body);

}  // namespace sherd
