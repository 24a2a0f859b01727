#include "train/sharded_slots.h"

#include "tests/support/ranks.h"
#include "tests/support/sharded_run.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;
using test::on_ranks;
using test::SmallTraining;
using test::Trace;

}  // namespace

TEST_CASE("a short loop does what a loop over trainable() does") {
  const SmallTraining t{.ranks = 3};
  for (const char* strategy : {"ddp", "zero1", "fsdp", "hsdp[replicate=3]"}) {
    INFO(strategy);
    const ShardPlan plan = parse_strategy(strategy, 3);
    const Trace expected = test::train_sharded(t, plan);
    Trace trace;
    on_ranks(3, [&](Rank& rank) {
      Tape tape(rank.runtime);
      const DeferParameters defer(*rank.runtime);
      Gpt2 model(tape, test::small_gpt(t));
      DeviceMesh mesh(rank.comm, plan.replicas);
      const auto sharded = fully_shard(model, tape, mesh, plan);
      sharded->init(1);
      ShardedSlots slots(*sharded);
      for (Slot& slot : slots.slots()) slot.weight_decay = slot.value.dims() > 1 ? 0.1 : 0;
      AdamW optimizer;
      for (int step = 0; step < t.steps; ++step) {
        const LossResult loss = test::small_loss(model, t, step, rank.rank);
        int64_t tokens = loss.tokens;
        sum_words(rank.comm, {&tokens, 1}, {"tokens"});
        const double sum = sum_over_ranks(rank.comm, loss.loss.value().item());
        const double scale = test::per_token(tokens);
        tape.backward(loss.loss);
        slots.finish_gradients();
        const double norm = slots.norm(scale).norm;
        slots.step(optimizer, 1e-2, scale * clip_factor(norm, t.clip));
        for (const Slot& slot : slots.slots()) check(!slot.grad, "a gradient is left:", slot.name);
        if (rank.rank != 0) continue;
        trace.losses.push_back(sum * scale);
        trace.norms.push_back(norm);
      }
      for (const Slot& slot : slots.slots()) {
        auto value = sharded->state(slot.name, slot.value).full().to_vector<float>();
        if (rank.rank == 0) trace.values[slot.name] = std::move(value);
        for (const auto& s : slot.state) {
          auto moment = sharded->state(slot.name, s.tensor).full().to_vector<float>();
          if (rank.rank == 0) trace.values[slot.name + '/' + s.name] = std::move(moment);
        }
      }
    });
    CHECK(trace.same_results(expected));
  }
}

TEST_CASE("an optimizer built before sharding is an error that says so") {
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    INFO(strategy);
    const auto early = [&] {
      on_ranks(2, [&](Rank& rank) {
        Tape tape(rank.runtime);
        Gpt2 model(tape, test::small_gpt({}));
        init_parameters(model, 1);
        std::vector<Slot> slots;
        for (const auto& p : parameters(model))
          slots.push_back({.name = p.name, .value = p.parameter.value()});
        DeviceMesh mesh(rank.comm);
        fully_shard(model, tape, mesh, parse_strategy(strategy, 2));
      });
    };
    CHECK_THROWS_WITH(early(), Contains("build the optimizer after fully_shard") &&
                                   Contains("trainable()") && Contains("wte.weight"));
  }
}

}  // namespace sherd
