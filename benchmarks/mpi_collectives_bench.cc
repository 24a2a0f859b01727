// Our collectives on MPI ranks beside Open MPI's own, on the same buffers, in turns.
//   bazel build //benchmarks:mpi_collectives_bench
//   tools/run_mpi.sh 2 out/bin/benchmarks/mpi_collectives_bench [KIB...]
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "analysis/comm_bench.h"
#include "dist/comm/mpi_ranks.h"

namespace sherd {
namespace {

/// CommBuffers::ops(), each followed by Open MPI's call of its kind.
std::vector<CommOp> with_open_mpi(const CommBuffers& buffers, int ranks) {
  const auto n = static_cast<int>(buffers.whole().numel());
  const Tensor whole = buffers.whole(), other = buffers.other(), part = buffers.part();
  std::vector<CommOp> all;
  for (CommOp& op : buffers.ops()) {
    CommOp theirs{"  Open MPI's", op.received_bytes, {}};
    if (op.name.starts_with("all_gather"))
      theirs.run = [=] {
        MPI_Allgather(part.raw(), n / ranks, MPI_FLOAT, other.raw(), n / ranks, MPI_FLOAT,
                      MPI_COMM_WORLD);
      };
    if (op.name == "reduce_scatter")
      theirs.run = [=] {
        MPI_Reduce_scatter_block(whole.raw(), part.raw(), n / ranks, MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD);
      };
    if (op.name == "all_reduce")
      theirs.run = [=] {
        MPI_Allreduce(MPI_IN_PLACE, other.raw(), n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      };
    all.push_back(std::move(op));
    if (theirs.run) all.push_back(std::move(theirs));
  }
  return all;
}

void measure(Rank& rank, int64_t kib) {
  const int64_t bytes = kib * 1024;
  const CommBuffers buffers(rank, bytes);
  const auto times = time_in_turns(rank, with_open_mpi(buffers, rank.size), comm_rounds(bytes));
  if (rank.rank != 0) return;
  const double ceiling = times[0].gb_per_s();
  for (size_t i = 0; i < times.size(); ++i) {
    const CommTime& t = times[i];
    std::printf("%-16s %6lld KiB  %9.1f us (least %9.1f)  %7.2f GB/s  %.2f of memcpy", t.op.c_str(),
                static_cast<long long>(kib), t.median_us, t.min_us, t.gb_per_s(),
                t.gb_per_s() / ceiling);
    if (t.op[0] == ' ')
      std::printf("  ours is %.2f times as fast", t.median_us / times[i - 1].median_us);
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  std::vector<int64_t> kib = {64, 256, 1024, 4096, 16384, 65536};
  if (argc > 1) kib.clear();
  for (int i = 1; i < argc; ++i) kib.push_back(std::atoll(argv[i]));
  sherd::run_mpi_ranks({}, [&](sherd::Rank& rank) {
    for (const int64_t size : kib) sherd::measure(rank, size);
  });
}
