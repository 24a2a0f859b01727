#include "dist/comm/mpi_ranks.h"

#include <mpi.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "dist/comm/group_comm.h"
#include "dist/comm/mpi_world.h"

namespace sherd {

namespace {

// How long a rank that failed stays, so that the others end by themselves, with its cause.
constexpr double kGrace_s = 1;

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

/// What MPI may still read or write stays for as long as the process does.
void keep_for_good(std::shared_ptr<MpiMessages> messages) {
  [[maybe_unused]] static const auto* const kept =
      new std::shared_ptr<MpiMessages>(std::move(messages));
}

}  // namespace

bool has_mpi_ranks() { return true; }

void run_mpi_ranks(const RanksOptions& options, const std::function<void(Rank&)>& body) {
  int began = 0;
  MPI_Initialized(&began);
  check(began == 0, "MPI has begun already; its ranks run once in a process");
  int level = 0, rank = 0, ranks = 1;
  // Calls are made by the rank's thread or by that of its stream, one at a time.
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const MpiWorld world = meet_world(rank, ranks, options.ranks_per_host);
  std::vector<int> members(static_cast<size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);

  const Context in("rank ", rank);
  try {
    check(world.hosts.size() == 1 || level >= MPI_THREAD_SERIALIZED,
          "this MPI serves one thread only, and ranks on several hosts need MPI_THREAD_SERIALIZED");
    const RuntimePtr runtime =
        make_rank_runtime(options, static_cast<int>(world.near_ranks().size()));
    const auto stream = std::make_shared<Stream>(StreamKind::worker, "communication");
    try {
      const auto transports = std::make_shared<MpiTransports>(world, options.timeout_s);
      GroupComm comm({.runtime = runtime,
                      .stream = stream,
                      .transports = transports,
                      .world = world.board,
                      .link = options.link,
                      .kept = nullptr},
                     transports->world(members, rank), rank, members);
      Rank mine{rank, ranks, runtime, comm};
      body(mine);
      stream->synchronize();
    } catch (const std::exception& e) {
      // Before the stream ends: its calls must not wait for others.
      world.board->abort(cause_at(rank, e.what()));
      throw;
    }
    // Others may still work: MPI_Finalize would wait for them with a busy core.
    world.board->set_ended(rank);
    while (!world.all_over() && !world.board->aborted()) nap();
    const std::string gone = world.processes->gone();
    if (!world.all_ended()) world.board->abort(gone);
    if (world.board->aborted())
      fail_as(ErrorKind::comm, "stopped at its end:", world.board->cause());
  } catch (const std::exception& e) {
    world.board->set_ended(rank);
    if (world.messages) keep_for_good(world.messages);
    const double begin_s = steady_seconds();
    while (!world.all_over() && steady_seconds() - begin_s < kGrace_s) nap();
    const auto* ours = dynamic_cast<const Error*>(&e);
    throw Error(ours != nullptr ? ours->kind() : ErrorKind::device, cause_at(rank, e.what()));
  }
  MPI_Finalize();
}

}  // namespace sherd
