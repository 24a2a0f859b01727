// mpi_ranks_test [CASE], under mpirun: the checks of all collectives; or a failure to be seen by
// mpi_failures_test.sh.
#include "dist/comm/mpi_ranks.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <thread>

#include "base/progress.h"
#include "tests/dist/comm/collective_checks.h"

namespace sherd {
namespace {

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void check_waits_sleep(Rank& rank) {
  rank.comm.barrier({"before"});
  const double cpu_s = cpu_seconds();
  const double begin_s = steady_seconds();
  if (rank.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  rank.comm.barrier({"late"});
  const double share = (cpu_seconds() - cpu_s) / (steady_seconds() - begin_s);
  check(share < 0.05, "a waiting rank used the processor for", share, "of the time");
}

void run(const std::string& name, Rank& rank) {
  if (name == "checks") {
    test::check_collectives(rank.comm, rank.runtime);
    test::check_total_bytes(rank.comm, rank.runtime);
    if (rank.size % 2 == 0) test::check_subgroups(rank.comm, rank.runtime, 2);
    check_waits_sleep(rank);
    return;
  }
  // mpirun sends SIGTERM to all as soon as one is gone; what they say before is to be seen.
  std::signal(SIGTERM, SIG_IGN);
  rank.comm.barrier({"begin"});
  const bool bad = rank.rank == 1;
  if (name == "kill" && bad) raise(SIGKILL);
  if (name == "exit" && bad) _exit(0);
  if (name == "throw" && bad) fail("no such file: data.bin");
  if (name == "return" && bad) return;
  if (name == "timeout" && bad) std::this_thread::sleep_for(std::chrono::seconds(20));
  rank.comm.barrier({"blocks.3"});
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "checks";
  try {
    sherd::run_mpi_ranks({.timeout_s = name == "timeout" ? 0.5 : 60.0},
                         [&](sherd::Rank& rank) { sherd::run(name, rank); });
  } catch (const std::exception& e) {
    std::cerr << std::string(e.what()) + "\n";
    return 1;
  }
  return 0;
}
