// What every command that runs on MPI ranks does first.
#pragma once

#include <cstdint>

namespace sherd {

/// The number of ranks of this process's mpirun. Where none started it, does not return: mpirun
/// takes this process's place, with `ranks` of them. Throws usage in a build without MPI;
/// `otherwise` says what to use instead.
int start_mpi_ranks(int64_t ranks, const char* otherwise);

}  // namespace sherd
