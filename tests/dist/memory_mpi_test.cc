// Under mpirun: what the system says a process holds (PSS) is its shards with fsdp, and everything
// with ddp.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

#include "base/error.h"
#include "dist/comm/mpi_ranks.h"
#include "tests/dist/chain.h"

namespace sherd {
namespace {

constexpr int kBlocks = 8;
constexpr int64_t kWidth = 768;
constexpr int64_t kUnit = kWidth * kWidth * 4;    // bytes, without bias
constexpr int64_t kStates = 4 * kBlocks * kUnit;  // of one whole: 72 MiB
constexpr int64_t kRest = int64_t{3} << 20;       // activations, code that runs first, stacks

/// Bytes that this process holds, shared ones by share.
int64_t pss_bytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;) {
    int64_t kib = 0;
    if (word == "Pss:" && in >> kib) return kib << 10;
  }
  fail("/proc/self/smaps_rollup does not tell the PSS");
}

/// How much more than `before_bytes` is held after two steps.
int64_t growth(Rank& rank, const std::string& strategy, int64_t before_bytes) {
  int64_t held = 0;
  const test::Job<test::Chain> job{
      .make = [](Tape& tape) { return test::Chain(tape, kBlocks, kWidth, false); },
      .loss =
          [](const test::Chain& model, const test::MicroBatch& b) {
            Tape& tape = model.blocks[0].weight.tape();
            const Tensor x = test::inputs(tape.runtime(), b, 4, kWidth);
            return test::squares(model.forward(tape.leaf(x)));
          },
      .before_step =
          [&](test::Chain&, ShardedModule&, int step) {
            if (step == 2) held = pss_bytes();
          }};
  test::train_on(rank, {.ranks = rank.size}, test::every(strategy, rank.size), job);
  return held - before_bytes;
}

void run(Rank& rank) {
  // Pages of programs and libraries are there from now on, whatever the strategy.
  const test::SmallTraining small{.ranks = rank.size};
  test::train_on(rank, small, test::every("fsdp", rank.size), test::small_job(small));
  const int64_t before = pss_bytes();
  // The allocator keeps what it has, so the one that needs less is first.
  const int64_t fsdp = growth(rank, "fsdp", before);
  const int64_t ddp = growth(rank, "ddp", before);
  std::printf("rank %d: PSS grows by %.1f MiB with fsdp, %.1f MiB with ddp\n", rank.rank,
              static_cast<double>(fsdp) / (1 << 20), static_cast<double>(ddp) / (1 << 20));
  // States, two gathered units, two units of gradients.
  const int64_t formula = kStates / rank.size + 4 * kUnit;
  check(fsdp <= formula * 103 / 100 + kRest, "with fsdp a process holds", fsdp,
        "bytes more, expected at most", formula, "and a little");
  check(fsdp >= kStates * 3 / 4 / rank.size, "PSS shows less than the values and moments:", fsdp);
  check(ddp >= kStates * 99 / 100, "PSS shows less than ddp's states:", ddp);
}

}  // namespace
}  // namespace sherd

int main() {
  try {
    sherd::run_mpi_ranks({.timeout_s = 60}, sherd::run);
  } catch (const std::exception& e) {
    std::cerr << std::string(e.what()) + "\n";
    return 1;
  }
  return 0;
}
