// For a build without Open MPI.
#include "base/error.h"
#include "dist/comm/mpi_ranks.h"

namespace sherd {

bool has_mpi_ranks() { return false; }

void run_mpi_ranks(const RanksOptions&, const std::function<void(Rank&)>&) {
  fail(
      "this build has no Open MPI: install libopenmpi-dev and openmpi-bin and build again, or use "
      "threads as ranks");
}

}  // namespace sherd
