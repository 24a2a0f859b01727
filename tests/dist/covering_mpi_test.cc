// covering_mpi_test [RANKS_PER_HOST], under mpirun: the covering set's trainings of as many ranks
// as there are processes, one after the other, with NaN wherever nothing is held. Each gives the
// bits that thread ranks give.
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "dist/comm/mpi_ranks.h"
#include "tests/dist/options.h"

namespace sherd {
namespace {

void run(Rank& rank) {
  int run = 0;
  for (const test::Options& o : test::covering_set()) {
    if (o.ranks != rank.size) continue;
    const Context in(o.name());
    auto t = test::training_of(o);
    const ShardPlan plan = test::plan_of(o);
    const auto mine = test::train_on(rank, t, plan, test::small_job(t));
    ++run;
    // The others sleep meanwhile.
    if (rank.rank == 0)
      check(mine.same_results(test::train_sharded(t, plan)),
            "processes give other bits than threads");
    rank.comm.barrier({"compared"});
  }
  check(run > 0, "the covering set has nothing for so many ranks:", rank.size);
  if (rank.rank == 0) std::printf("%d trainings on %d processes\n", run, rank.size);
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  try {
    sherd::run_mpi_ranks({.runtime = {.poison = true},
                          .timeout_s = 60,
                          .ranks_per_host = argc > 1 ? std::atoi(argv[1]) : 0},
                         sherd::run);
  } catch (const std::exception& e) {
    std::cerr << std::string(e.what()) + "\n";
    return 1;
  }
  return 0;
}
