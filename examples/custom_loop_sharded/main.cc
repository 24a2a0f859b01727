// A sharded training loop of one's own, without the Trainer: examples/custom_loop on two ranks.
//   bazel run -c opt //examples/custom_loop_sharded -- [TEXT [STEPS [STRATEGY]]]   (KJV, 500, fsdp)
#include <cstdio>

#include "base/file.h"
#include "dist/comm/thread_ranks.h"
#include "dist/fully_shard.h"
#include "dist/tree_fold.h"
#include "nn/models/gpt2.h"
#include "optim/adamw.h"
#include "optim/lr_schedule.h"
#include "train/bundled_text.h"
#include "train/cache_folder.h"
#include "train/sampler.h"
#include "train/sharded_slots.h"

using namespace sherd;

int main(int argc, char** argv) try {
  constexpr int kRanks = 2;
  const MappedFile file(
      argc > 1 ? argv[1] : prepare_bundled_text(bundled_text("kjv"), default_cache_folder()));
  const int64_t steps = argc > 2 ? std::stoll(argv[2]) : 500;
  const ShardPlan plan = parse_strategy(argc > 3 ? argv[3] : "fsdp", kRanks);
  run_thread_ranks({.ranks = kRanks}, [&](Rank& rank) {
    Tape tape(rank.runtime);
    const DeferParameters without_bytes(*rank.runtime);
    Gpt2 model(tape, gpt2_preset("nano"));
    DeviceMesh mesh(rank.comm, plan.replicas);
    const auto sharded = fully_shard(model, tape, mesh, plan);
    sharded->init(/*seed=*/1);
    ShardedSlots state(*sharded);  // of this rank's parts
    for (Slot& slot : state.slots()) slot.weight_decay = slot.value.dims() > 1 ? 0.1 : 0;
    AdamW optimizer({.beta2 = 0.99});
    const LrSchedule lr{LrShape::cosine, 1e-3, 1e-4, /*warmup=*/50, steps};
    const int64_t B = 12 / kRanks, T = model.config.context;
    const Sampler sampler(static_cast<int64_t>(file.text().size()), T, SampleOrder::random, 1);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t g = step * kRanks + rank.rank;  // this rank's batch among all
      std::vector<int32_t> text;
      for (int64_t b = 0; b < B; ++b)
        for (const char c : file.text().substr(sampler.begin_of(g * B + b), T + 1))
          text.push_back(static_cast<unsigned char>(c));
      const Tensor all = Tensor::from<int32_t>(rank.runtime, {B, T + 1}, text);
      const LossResult result =
          model.loss(all.slice(1, 0, T).contiguous(), all.slice(1, 1, T + 1).contiguous(),
                     {.training = true, .key = RandomKey{1, 0}.derive(g)});
      const double mean = 1.0 / static_cast<double>(result.tokens * kRanks);
      const double loss = sum_over_ranks(rank.comm, result.loss.value().item()) * mean;
      if (rank.rank == 0 && (step % 50 == 0 || step + 1 == steps))
        std::printf("step %4ld  loss %.4f\n", step, loss);
      tape.backward(result.loss);
      state.finish_gradients();
      state.step(optimizer, lr.at(step), mean * clip_factor(state.norm(mean).norm, 1.0));
    }
  });
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
