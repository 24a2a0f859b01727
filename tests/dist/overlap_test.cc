// Communication over a slow link hides behind computation when units are gathered ahead, and only
// then. Both are sleeps, long beside what a busy machine adds, and shares are taken of clocks.
#include "analysis/overlap.h"

#include <chrono>
#include <thread>

#include "base/progress.h"
#include "tests/dist/toy.h"

namespace sherd {
namespace {

using test::Chain;
using test::every;
using test::inputs;
using test::Job;
using test::MicroBatch;
using test::SmallTraining;
using test::squares;
using test::Trace;
using test::train_sharded;

constexpr int kBlocks = 5;
// A backward of a block covers a gather and a reduction.
constexpr double kLink_s = 0.010, kForward_s = 0.015, kBackward_s = 0.030;
constexpr double kFloor = 0.8;
// Collectives of a step, and all of them beside those that have nothing to hide behind.
constexpr int kCollectives = 3 * kBlocks - 1;
constexpr double kAll = static_cast<double>(kCollectives) / (kCollectives - 2);

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// x, computed for a known time.
Variable slow(const Variable& x) {
  sleep(kForward_s);
  return x.tape().record("slow", x.value(), {x}, [](const Tensor& dy) -> Grads {
    sleep(kBackward_s);
    return {dy};
  });
}

/// Share of what computation could hide that was hidden on rank 0, in each step but the first.
std::vector<double> shares_hidden(ShardPlan plan) {
  std::vector<CommSpan> spans;
  std::vector<size_t> begins;
  std::vector<double> begins_s;
  const Job<Chain> job{
      .make = [](Tape& tape) { return Chain(tape, kBlocks, 6); },
      .loss =
          [](const Chain& model, const MicroBatch& b) {
            Tape& tape = model.blocks[0].weight.tape();
            Variable x = tape.leaf(inputs(tape.runtime(), b, 4, 6));
            for (const auto& block : model.blocks) x = slow(block.forward(x, Activation::tanh));
            return squares(x);
          },
      .before_step =
          [&](Chain&, ShardedModule& sharded, int step) {
            Communicator& world = sharded.mesh().world();
            if (world.rank() != 0) return;
            if (step == 0) world.set_observer([&](const CommSpan& s) { spans.push_back(s); });
            // Nothing is in flight between steps.
            begins.push_back(spans.size());
            begins_s.push_back(steady_seconds());
          },
  };
  const SmallTraining t{.steps = 5, .link = Link{.gbps = 100, .latency_us = kLink_s * 1e6}};
  const Trace run = train_sharded(t, plan, job);
  std::vector<double> shares;
  for (size_t step = 1; step + 1 < begins.size(); ++step) {
    const Overlap overlap =
        overlap_of(std::span(spans).subspan(begins[step], begins[step + 1] - begins[step]),
                   run.counters[step].exposed_s, begins_s[step + 1] - begins_s[step]);
    // All gathers and reductions were seen, and took what the link takes.
    CHECK(overlap.comm_s >= kCollectives * kLink_s);
    shares.push_back(overlap.share_hidden());
  }
  return shares;
}

ShardPlan with_depth(int64_t depth) {
  ShardPlan plan = every("fsdp", 2);
  plan.prefetch.forward = plan.prefetch.backward = depth;
  return plan;
}

TEST_CASE("case 38: gathering one unit ahead hides what computation can hide") {
  const std::vector<double> shares = shares_hidden(with_depth(1));
  // A busy machine adds waits to a step, never takes them away.
  const double best = *std::max_element(shares.begin(), shares.end());
  INFO("best of " << shares.size() << ": " << best);
  CHECK(best >= kFloor);
  // The first and the last may find some computation after all.
  CHECK(best <= kAll + 0.05);
}

TEST_CASE("case 38: without gathering ahead gathers are waited for") {
  for (const double share : shares_hidden(with_depth(0))) {
    INFO("hidden " << share);
    CHECK(share < kFloor - 0.2);
    CHECK(share > 0);  // reductions run beside backward all the same
  }
}

TEST_CASE("what could be hidden is not more than there is computation") {
  const auto span = [](const char* op, double begin_s, double end_s) {
    return CommSpan{op, "", 0, begin_s, end_s};
  };
  const std::vector<CommSpan> spans = {span("all_gather", 0, 1), span("exchange", 1, 5),
                                       span("all_gather", 5, 7), span("reduce_scatter", 7, 10)};
  const Overlap overlap = overlap_of(spans, 4.5, 20);
  CHECK(overlap.comm_s == 6);
  CHECK(overlap.hideable_s == 2);
  CHECK(overlap.share_hidden() == Approx(0.75));
  CHECK(overlap_of(spans, 4.5, 5.5).hideable_s == 1);
  CHECK(overlap_of(std::span(spans).first(3), 0, 20).share_hidden() == 0);
}

}  // namespace
}  // namespace sherd
