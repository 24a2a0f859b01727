// What gathering ahead hides of a slow link's time: a GPT on two thread ranks whose link is
// imitated, so slow that communication takes as long as computation, or a part of it.
//   bazel run //benchmarks:overlap_bench
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "analysis/overlap.h"
#include "analysis/workload.h"
#include "base/progress.h"
#include "dist/comm/thread_ranks.h"
#include "dist/fully_shard.h"
#include "nn/init.h"
#include "optim/adamw.h"
#include "train/sharded_slots.h"

namespace sherd {
namespace {

/// W1's shape, small: units of one size but for the root.
Workload small_workload() {
  Workload w = workload("W1");
  w.model.vocab = 1024;
  w.batch = 2;
  return w;
}

struct Measured {
  double step_s = 0;
  Overlap overlap;
};

/// Rank 0's steps, by how long they took; the first two are not among them.
std::vector<Measured> train(int64_t prefetch, std::optional<Link> link, int steps) {
  std::vector<Measured> measured;
  run_thread_ranks({.ranks = 2, .link = link}, [&](Rank& rank) {
    const Workload w = small_workload();
    Tape tape(rank.runtime);
    Gpt2 model = [&] {
      const DeferParameters defer(*rank.runtime);
      return Gpt2(tape, w.model);
    }();
    DeviceMesh mesh(rank.comm);
    ShardPlan plan;
    plan.prefetch.forward = plan.prefetch.backward = prefetch;
    const auto sharded = fully_shard(model, tape, mesh, plan);
    sharded->init(1);
    ShardedSlots slots(*sharded);
    AdamW optimizer;
    std::vector<CommSpan> spans;
    if (rank.rank == 0)
      rank.comm.set_observer([&](const CommSpan& span) { spans.push_back(span); });
    for (int step = 0; step < steps; ++step) {
      const CategoryScope scope(*rank.runtime, Category::activations);
      const int64_t T = w.model.context;
      const Tensor both = Tensor::from<int32_t>(rank.runtime, {w.batch, T + 1},
                                                workload_tokens(w, static_cast<uint64_t>(step)));
      spans.clear();
      sharded->take_counters();
      const double begin_s = steady_seconds();
      const LossResult loss = model.loss(both.slice(1, 0, T).contiguous(),
                                         both.slice(1, 1, T + 1).contiguous(), {.training = true});
      tape.backward(loss.loss);
      slots.finish_gradients();
      slots.step(optimizer, 3e-4, 1 / static_cast<double>(2 * loss.tokens));
      const double step_s = steady_seconds() - begin_s;
      if (rank.rank == 0 && step >= 2)
        measured.push_back({step_s, overlap_of(spans, sharded->take_counters().exposed_s, step_s)});
    }
    rank.comm.set_observer({});
  });
  std::sort(measured.begin(), measured.end(),
            [](const Measured& a, const Measured& b) { return a.step_s < b.step_s; });
  return measured;
}

void run(int steps) {
  // Without a link: what a step computes.
  const Measured fast = train(1, std::nullopt, steps)[0];
  const double bytes = [] {
    Tape tape(Runtime::create({.device = kMeta}));
    Gpt2 model(tape, small_workload().model);
    return 4.0 * static_cast<double>(count_parameters(model).total);
  }();
  std::printf("2 thread ranks, 6 blocks of 384; without a link %.1f ms a step\n",
              fast.step_s * 1e3);
  std::printf("link ms  prefetch  step ms  communication  waited  could hide  share hidden\n");
  for (const double part : {0.5, 1.0}) {
    // About 3/2 of the parameters are received: two gathers and a reduction of halves.
    const double gbps = 1.5 * bytes * 8e-9 / (part * fast.step_s);
    for (const int64_t prefetch : {0, 1, 2}) {
      const auto all = train(prefetch, Link{.gbps = gbps, .latency_us = 50}, steps);
      const Measured& m = all[all.size() / 2];
      std::printf("%7.1f %9lld %8.1f %14.1f %7.1f %11.1f %13.2f\n", part * fast.step_s * 1e3,
                  static_cast<long long>(prefetch), m.step_s * 1e3, m.overlap.comm_s * 1e3,
                  m.overlap.exposed_s * 1e3, m.overlap.hideable_s * 1e3, m.overlap.share_hidden());
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  CLI::App app("Share of communication that is hidden behind computation");
  int steps = 9;
  app.add_option("--steps", steps, "of each line; two of them warm up")->check(CLI::Range(3, 1000));
  CLI11_PARSE(app, argc, argv);
  sherd::run(steps);
}
