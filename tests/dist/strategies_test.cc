// Every strategy, grouping and prefetch gives the same bits.
#include "nn/models/llama.h"
#include "tests/dist/toy.h"

namespace sherd {
namespace {

using test::check_close;
using test::every;
using test::small_job;
using test::SmallTraining;
using test::Trace;
using test::train_plain;
using test::train_sharded;

}  // namespace

TEST_CASE("all strategies give the same bits, and the loss of a plain loop") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const SmallTraining t{.ranks = ranks, .accumulate = 2, .steps = 4, .dropout = 0.1};
    const Trace ddp = train_sharded(t, every("ddp", ranks));
    REQUIRE(ddp.losses.size() == 4);
    check_close(ddp, train_plain(t, small_job(t)), 1e-5);
    for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp", "fsdp-keep"}) {
      INFO(strategy << " on " << ranks);
      CHECK(train_sharded(t, every(strategy, ranks)).same_results(ddp));
    }
    if (ranks % 2 != 0) continue;
    for (const int replicas : {1, 2, ranks}) {
      INFO("hsdp with " << replicas << " replicas on " << ranks);
      const auto plan = every("hsdp[replicate=" + std::to_string(replicas) + "]", ranks);
      CHECK(train_sharded(t, plan).same_results(ddp));
    }
  }
}

TEST_CASE("one reduction a step gives the same bits in every strategy") {
  const SmallTraining t{.ranks = 3, .accumulate = 3};
  ShardPlan plan = parse_strategy("ddp", 3);
  const Trace ddp = train_sharded(t, plan);
  for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp", "fsdp-keep"}) {
    INFO(strategy);
    plan = parse_strategy(strategy, 3);
    plan.sync = Sync::last;
    CHECK(train_sharded(t, plan).same_results(ddp));
  }
}

TEST_CASE("neither grouping nor prefetch nor recompute changes a bit") {
  SmallTraining t{.ranks = 2, .accumulate = 2, .dropout = 0.1};
  const Trace expected = train_sharded(t, every("ddp", 2));
  for (const Recompute& recompute :
       {kRecomputeNone, kRecomputeBlock,
        Recompute{.norm = true, .mlp = true, .qkv = true, .attention = true}})
    for (const char* strategy : {"fsdp", "fsdp-keep", "fsdp[reshard_after_forward=2]",
                                 "zero3[resident_below=100]", "zero2"})
      for (const char* group : {"block", "parameter", "model", "bytes(1000,4000)"})
        for (const int64_t depth : {0, 1, 3}) {
          INFO(strategy << ' ' << group << " prefetch " << depth << " recompute " << recompute.block
                        << recompute.norm);
          t.recompute = recompute;
          ShardPlan plan = every(strategy, 2);
          plan.prefetch.forward = plan.prefetch.backward = depth;
          Tape tape(Runtime::create({}));
          Gpt2 model(tape, test::small_gpt(t));
          plan.unit_of = parse_grouping(group, parameters(model));
          CHECK(train_sharded(t, plan).same_results(expected));
        }
}

TEST_CASE("four ranks with one micro-batch are one rank with four, in the order of the tree") {
  Trace first;
  for (const int ranks : {1, 2, 4}) {
    INFO(ranks);
    const SmallTraining t{.ranks = ranks, .accumulate = 4 / ranks, .steps = 4};
    for (const char* strategy : {"ddp", "fsdp", "zero1"}) {
      ShardPlan plan = every(strategy, ranks);
      plan.accumulate_order = AccumulateOrder::tree;
      const Trace now = train_sharded(t, plan);
      if (first.losses.empty()) first = now;
      CHECK(now.same_results(first));
    }
  }
}

TEST_CASE("bf16 parameters and bf16 reductions are alike in every strategy") {
  SmallTraining t{.ranks = 3, .accumulate = 2};
  t.dtype = DType::bf16;
  for (const DType wire : {DType::f32, DType::bf16}) {
    ShardPlan plan = every("ddp", 3);
    plan.reduce = wire;
    const Trace ddp = train_sharded(t, plan);
    CHECK(ddp.values.contains("blocks.0.mlp.up.weight/master"));
    for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp"}) {
      INFO(strategy << " reduced in " << (wire == DType::f32 ? "f32" : "bf16"));
      plan = every(strategy, 3);
      plan.reduce = wire;
      CHECK(train_sharded(t, plan).same_results(ddp));
    }
  }
}

TEST_CASE("a Llama trains alike in every strategy, and as in a plain loop") {
  const SmallTraining t{.ranks = 3, .accumulate = 2, .dropout = 0.1};
  const test::Job<Llama> job{
      .make =
          [](Tape& tape) {
            return Llama(tape, {.layers = 3,
                                .heads = 4,
                                .kv_heads = 2,
                                .channels = 16,
                                .hidden = 24,
                                .vocab = 50,
                                .context = 8,
                                .dropout = 0.1});
          },
      .loss = [t](const Llama& model,
                  const test::MicroBatch& b) { return test::small_loss(model, t, b.step, b.g); }};
  const Trace ddp = train_sharded(t, every("ddp", 3), job);
  check_close(ddp, train_plain(t, job), 1e-5);
  CHECK(ddp.values.contains("blocks.2.mlp.gate_up.weight"));
  for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp", "fsdp-keep"}) {
    INFO(strategy);
    CHECK(train_sharded(t, every(strategy, 3), job).same_results(ddp));
  }
}

TEST_CASE("case 21: frozen parameters have no gradient and no state, and are not reduced") {
  SmallTraining t{.ranks = 2};
  t.freeze = "blocks.*.weight";
  const Trace ddp = train_sharded(t, every("ddp", 2));
  CHECK_FALSE(ddp.values.contains("blocks.0.mlp.up.weight"));
  check_close(ddp, train_plain(t, small_job(t)), 1e-5);
  for (const char* strategy : {"zero1", "zero2", "fsdp", "hsdp"}) {
    INFO(strategy);
    CHECK(train_sharded(t, every(strategy, 2)).same_results(ddp));
  }
}

TEST_CASE("case 25: evaluation in between changes nothing, and leaves nothing gathered") {
  SmallTraining t{.ranks = 2, .steps = 4};
  const Trace without = train_sharded(t, every("fsdp", 2));
  t.eval_every = 2;
  const Trace with = train_sharded(t, every("fsdp", 2));
  CHECK(with.same_results(without));
  CHECK(with.resident == without.resident);
  CHECK(with.bytes[static_cast<size_t>(Traffic::eval)] > 0);
  CHECK(with.bytes[static_cast<size_t>(Traffic::all_gather)] ==
        without.bytes[static_cast<size_t>(Traffic::all_gather)]);
}

}  // namespace sherd
