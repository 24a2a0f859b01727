// However late collectives begin and end, and in whatever order ranks come: the same bits. What a
// step reads or frees too early shows here, and under ThreadSanitizer as a race.
#include "tests/dist/toy.h"
#include "tests/support/delayed_comm.h"

namespace sherd {
namespace {

using test::Chain;
using test::DelayedComm;
using test::every;
using test::inputs;
using test::Job;
using test::MicroBatch;
using test::SmallTraining;
using test::squares;
using test::Trace;

constexpr int kSteps = 220;
constexpr int kMostDelay_us = 100;

/// Blocks of which one is used twice, so that a unit is kept, and one that is skipped now and then:
/// its gradient is absent, and what was gathered ahead is not used.
Job<Chain> chain() {
  return {.make = [](Tape& tape) { return Chain(tape, 3, 3); },
          .loss =
              [](const Chain& model, const MicroBatch& b) {
                Tape& tape = model.blocks[0].weight.tape();
                const Variable x = tape.leaf(inputs(tape.runtime(), b, 2, 3));
                const bool skips = b.step % 5 == 3;
                return squares(model.forward(
                    x, skips ? std::vector<int>{0, 1, 1} : std::vector<int>{0, 1, 2, 1}));
              }};
}

Trace train_delayed(const SmallTraining& t, const ShardPlan& plan, uint64_t seed) {
  return on_thread_ranks(t, [&](Rank& rank) {
    DelayedComm comm(rank.comm, seed * 100 + static_cast<uint64_t>(rank.rank), kMostDelay_us);
    Rank late{rank.rank, rank.size, rank.runtime, comm};
    Trace mine = train_on(late, t, plan, chain());
    check(comm.slept() > kSteps, "hardly a wait:", comm.slept());
    return mine;
  });
}

struct DelayedCase {
  const char* strategy;
  int ranks = 2;
  int64_t prefetch = 1;
};

TEST_CASE("case 6: collectives that come late by chance change no bit") {
  uint64_t seed = 0;
  Trace expected[5];  // by ranks
  for (const auto& [strategy, ranks, prefetch] : std::vector<DelayedCase>{
           {"zero1"},
           {"zero2"},
           {"zero3[resident_below=20]", 2, 3},
           {"fsdp", 2, 0},
           {"fsdp[reshard_after_forward=2]", 4, 1},
           {"hsdp", 4, 1},
       }) {
    INFO(strategy << " on " << ranks << ", prefetch " << prefetch);
    const SmallTraining t{.ranks = ranks, .steps = kSteps, .poison = true};
    Trace& undelayed = expected[ranks];
    if (undelayed.losses.empty()) undelayed = train_sharded(t, every("ddp", ranks), chain());
    ShardPlan plan = every(strategy, ranks);
    plan.unit_of = unit_by_parameter;
    plan.prefetch.forward = plan.prefetch.backward = prefetch;
    CHECK(train_delayed(t, plan, ++seed).same_results(undelayed));
  }
}

TEST_CASE("waits are a function of the seed") {
  test::Delays a(1, 1000), b(1, 1000), c(2, 1000);
  for (int i = 0; i < 1000; ++i) a.next(), b.next(), c.next();
  CHECK(a.slept() == b.slept());
  CHECK(a.seed() == b.seed());
  CHECK(a.seed() != c.seed());
  CHECK(a.slept() > 100);
  CHECK(a.slept() < 150);
}

}  // namespace
}  // namespace sherd
