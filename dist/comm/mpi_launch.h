// How a program comes to run as MPI ranks: started by mpirun, or by itself, which starts mpirun.
// The one place that reads or sets environment variables; they are Open MPI's own.
#pragma once

#include <cstdint>
#include <optional>

namespace sherd {

/// The number of ranks, if mpirun started this process.
std::optional<int> mpirun_ranks();

/// Runs this program again, with its arguments, as `ranks` processes under mpirun, in place of this
/// process: does not return. Ranks may use any core, and have a minute to end after a signal.
/// Throws usage if there is no mpirun.
[[noreturn]] void restart_under_mpirun(int64_t ranks);

}  // namespace sherd
