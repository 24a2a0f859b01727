// mpi_ranks_test [CASE [RANKS_PER_HOST [BAD]]], under mpirun: the checks of all collectives; or how
// rank BAD fails, to be seen by mpi_failures_test.sh. RANKS_PER_HOST: as in RanksOptions.
#include "dist/comm/mpi_ranks.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

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

/// One rank fails while all have much on its way, whose memory goes when they hear of it.
void fail_while_busy(const std::string& name, Rank& rank, bool is_bad) {
  std::thread failure([&] {
    if (!is_bad) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (name == "busy-kill") raise(SIGKILL);
    if (name == "busy-stall") raise(SIGSTOP);
    rank.comm.abort("the user asked for it");
  });
  try {
    for (;;) {
      std::vector<CutTensor> items;
      for (const int64_t rows : {1, 1000, 1000000}) {
        const Cut cut = even_cut(1, rows, 3, rank.size);
        items.push_back({Tensor::full(rank.runtime, {cut.size(rank.rank), 3}, 1),
                         Tensor::full(rank.runtime, {rows, 3}, 1), cut});
      }
      rank.comm.all_gather(items, {"blocks.3"});
      rank.comm.reduce_scatter(items, {.wire = DType::bf16}, {"blocks.3"}).event().wait();
    }
  } catch (const std::exception&) {
    failure.join();
    throw;
  }
}

void run(const std::string& name, Rank& rank, int bad) {
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
  const bool is_bad = rank.rank == bad;
  if (name.starts_with("busy")) return fail_while_busy(name, rank, is_bad);
  if (name == "kill" && is_bad) raise(SIGKILL);
  if (name == "exit" && is_bad) _exit(0);
  if (name == "throw" && is_bad) fail("no such file: data.bin");
  if (name == "return" && is_bad) return;
  if (name == "timeout" && is_bad) std::this_thread::sleep_for(std::chrono::seconds(20));
  rank.comm.barrier({name == "mismatch" && is_bad ? "blocks.4" : "blocks.3"});
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "checks";
  const int ranks_per_host = argc > 2 ? std::atoi(argv[2]) : 0;
  const int bad = argc > 3 ? std::atoi(argv[3]) : 1;
  try {
    sherd::run_mpi_ranks({.timeout_s = name == "timeout" || name == "busy-stall" ? 0.5 : 60.0,
                          .ranks_per_host = ranks_per_host},
                         [&](sherd::Rank& rank) { sherd::run(name, rank, bad); });
  } catch (const std::exception& e) {
    std::cerr << std::string(e.what()) + "\n";
    return 1;
  }
  return 0;
}
