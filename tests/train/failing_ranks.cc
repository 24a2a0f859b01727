// failing_ranks PLACE HOW FOLDER, under mpirun: a small run in FOLDER, of which rank 1 fails: at
// number PLACE of kPlaces, by throwing, exiting or SIGKILL.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "dist/comm/mpi_ranks.h"
#include "tests/train/failing_lines.h"
#include "train/trainer.h"

namespace sherd {
namespace {

void run(Rank& rank, const std::string& place, const std::string& how, const std::string& folder) {
  const std::vector<std::string> sets = {"run.out=" + folder + "/run",
                                         "dist.ranks=" + std::to_string(rank.size)};
  const RunConfig config = read_run_config(
      "[run]\nsteps = 2\n[model]\npreset = \"tiny\"\n[data]\nfiles = [\"" + folder +
          "/text.txt\"]\n[train]\neval_every = 0\n[dist]\nengine = \"mpi\"\nstrategy = \"fsdp\"\n",
      "run.toml", sets);
  TrainerOptions options;
  options.cache = folder + "/cache";
  options.narrate = 2;
  Trainer trainer(config, options, rank);
  test::FailingLines out(place, [&] {
    if (rank.rank != 1) return;
    if (how == "kill") raise(SIGKILL);
    if (how == "exit") _exit(3);
    fail("the disk is on fire");
  });
  trainer.run(out);
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  try {
    sherd::check(argc == 4, "failing_ranks PLACE HOW FOLDER");
    const char* const place = sherd::test::kPlaces.at(std::stoul(argv[1]));
    sherd::run_mpi_ranks({.timeout_s = 30},
                         [&](sherd::Rank& rank) { sherd::run(rank, place, argv[2], argv[3]); });
  } catch (const std::exception& e) {
    std::cerr << std::string(e.what()) + "\n";
    return 1;
  }
  return 0;
}
