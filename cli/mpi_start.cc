#include "cli/mpi_start.h"

#include "base/error.h"
#include "dist/comm/mpi_launch.h"
#include "dist/comm/mpi_ranks.h"

namespace sherd {

int start_mpi_ranks(int64_t ranks, const char* otherwise) {
  if (!has_mpi_ranks())
    fail(
        "this build has no MPI: install it with apt-get install openmpi-bin libopenmpi-dev, and "
        "build again; or use",
        otherwise);
  const auto started = mpirun_ranks();
  if (!started) restart_under_mpirun(ranks);
  return *started;
}

}  // namespace sherd
