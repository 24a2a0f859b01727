// A sharded training loop of one's own, without the Trainer: examples/custom_loop on two ranks.
//   bazel run -c opt //examples/custom_loop_sharded -- [TEXT [STEPS [STRATEGY]]]
//   default: the King James Bible, 500 steps, fsdp
#include <cstdio>

#include "base/file.h"
#include "dist/comm/thread_ranks.h"
#include "dist/fully_shard.h"
#include "nn/models/gpt2.h"
#include "optim/adamw.h"
#include "optim/grad_clip.h"
#include "optim/lr_schedule.h"
#include "train/bundled_text.h"
#include "train/cache_folder.h"
#include "train/sampler.h"

using namespace sherd;

constexpr int kRanks = 2;

int main(int argc, char** argv) try {
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

    std::vector<Slot> slots, norm_slots;  // this rank's parts; the norm counts each row once
    for (const auto& p : sharded->trainable())
      slots.push_back(
          {.name = p.name, .value = p.value, .weight_decay = p.shape.size() > 1 ? 0.1 : 0});
    AdamW optimizer({.beta2 = 0.99});
    const LrSchedule lr{LrShape::cosine, 1e-3, 1e-4, /*warmup=*/50, steps};

    const int64_t B = 12 / kRanks, T = model.config.context;
    const Sampler sampler(static_cast<int64_t>(file.text().size()), T, SampleOrder::random, 1);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t g = step * kRanks + rank.rank;  // this rank's batch among all
      std::vector<int32_t> tokens, targets;
      for (int64_t b = 0; b < B; ++b)
        for (int64_t t = 0, at = sampler.begin_of(g * B + b); t < T; ++t, ++at) {
          tokens.push_back(static_cast<unsigned char>(file.text()[at]));
          targets.push_back(static_cast<unsigned char>(file.text()[at + 1]));
        }
      const LossResult result = model.loss(Tensor::from<int32_t>(rank.runtime, {B, T}, tokens),
                                           Tensor::from<int32_t>(rank.runtime, {B, T}, targets),
                                           {.training = true, .key = RandomKey{1, 0}.derive(g)});
      const double mean = 1.0 / static_cast<double>(result.tokens * kRanks);
      const double mine = result.loss.value().item();
      double all[kRanks];
      rank.comm.exchange(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                         {"loss"});
      if (rank.rank == 0 && (step % 50 == 0 || step + 1 == steps))
        std::printf("step %4ld  loss %.4f\n", step, (all[0] + all[1]) * mean);
      tape.backward(result.loss);
      sharded->finish_gradients();
      norm_slots = slots;
      for (size_t i = 0; i < slots.size(); ++i) {
        slots[i].grad = sharded->trainable()[i].grad;
        norm_slots[i].grad = sharded->trainable()[i].norm_grad;
      }
      const double norm =
          grad_norm(norm_slots, mean, NormKind::two, {sharded->norm_sum(), sharded->norm_max()})
              .norm;
      norm_slots.clear();
      optimizer.step(slots, lr.at(step), mean * clip_factor(norm, 1.0));
      for (auto& slot : slots) slot.grad = {};
      sharded->finish_step();
    }
  });
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
