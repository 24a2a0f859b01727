// What users of other frameworks reported of branches, hangs and failures.
#include <atomic>
#include <chrono>
#include <thread>

#include "base/progress.h"
#include "tests/dist/toy.h"

namespace sherd {
namespace {

using Catch::Contains;
using test::Chain;
using test::check_close;
using test::every;
using test::inputs;
using test::Job;
using test::MicroBatch;
using test::small_job;
using test::SmallTraining;
using test::squares;
using test::Trace;
using test::train_plain;
using test::train_sharded;

constexpr const char* kStrategies[] = {"ddp", "zero1", "zero2", "fsdp", "fsdp-keep", "hsdp"};

/// A chain of which each micro-batch says which blocks it goes through.
Job<Chain> branching(int blocks, const std::function<std::vector<int>(const MicroBatch&)>& path) {
  return {
      .make = [blocks](Tape& tape) { return Chain(tape, blocks, 6); },
      .loss =
          [path](const Chain& model, const MicroBatch& b) {
            Tape& tape = model.blocks[0].weight.tape();
            return squares(model.forward(tape.constant(inputs(tape.runtime(), b, 4, 6)), path(b)));
          }};
}

/// Runs `body` on the ranks, of which all must end with an error, within seconds; returns it.
std::string error_on_all(int ranks, const std::function<void(Rank&)>& body) {
  std::atomic<int> failed = 0;
  const double begin_s = steady_seconds();
  std::string text = "no error";
  try {
    run_thread_ranks({.ranks = ranks, .timeout_s = 60}, [&](Rank& rank) {
      try {
        body(rank);
      } catch (...) {
        ++failed;
        throw;
      }
    });
  } catch (const Error& e) {
    text = e.what();
  }
  CHECK(failed == ranks);
  CHECK(steady_seconds() - begin_s < 5);
  return text;
}

TEST_CASE("case 23: a branch that one rank alone takes ends all, naming units and ranks") {
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    const ShardPlan plan = every(strategy, 2);
    const std::string text = error_on_all(2, [&](Rank& rank) {
      Tape tape(rank.runtime);
      Chain model(tape, 4, 6);
      init_parameters(model, 1);
      DeviceMesh mesh(rank.comm, plan.replicas);
      const auto sharded = fully_shard(model, tape, mesh, plan);
      const std::vector<int> path =
          rank.rank == 0 ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 1, 3};
      const Variable x = tape.constant(inputs(rank.runtime, {.g = rank.rank}, 4, 6));
      tape.backward(squares(model.forward(x, path)).loss);
      sharded->finish_gradients();
    });
    CHECK_THAT(text, Contains("rank 0") && Contains("rank 1") && Contains("of blocks.2") &&
                         Contains("of blocks.1"));
  }
}

TEST_CASE("case 23: where the order of reductions stays the same, who skipped adds zeros") {
  // Block 0 is the last in backward, and unused blocks are reduced at its end.
  const auto job = branching(3, [](const MicroBatch& b) {
    return b.rank == 1 ? std::vector<int>{1, 2} : std::vector<int>{0, 1, 2};
  });
  const SmallTraining t{.ranks = 3, .accumulate = 2};
  const Trace ddp = train_sharded(t, every("ddp", 3), job);
  check_close(ddp, train_plain(t, job));
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    CHECK(train_sharded(t, every(strategy, 3), job).same_results(ddp));
  }
}

TEST_CASE("case 23: all ranks of a replica may skip a block") {
  const auto job = branching(3, [](const MicroBatch& b) {
    return b.rank == (b.step == 1 ? 3 : 0) || b.rank == 1 ? std::vector<int>{1, 2}
                                                          : std::vector<int>{0, 1, 2};
  });
  const SmallTraining t{.ranks = 4, .accumulate = 2, .steps = 4};
  const Trace ddp = train_sharded(t, every("ddp", 4), job);
  check_close(ddp, train_plain(t, job));
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    CHECK(train_sharded(t, every(strategy, 4), job).same_results(ddp));
  }
}

TEST_CASE("case 24: micro-batches of a step skip different blocks") {
  const auto job = branching(4, [](const MicroBatch& b) {
    return b.k == 1   ? std::vector<int>{0, 2, 3}
           : b.k == 2 ? std::vector<int>{0, 1, 3}
                      : std::vector<int>{0, 1, 2, 3};
  });
  const SmallTraining t{.ranks = 2, .accumulate = 3};
  const Trace plain = train_plain(t, job);
  for (const Sync sync : {Sync::every, Sync::last})
    for (const auto order : {AccumulateOrder::sequential, AccumulateOrder::tree}) {
      if (sync == Sync::last && order == AccumulateOrder::tree) continue;
      Trace first;
      for (const char* strategy : kStrategies) {
        INFO(strategy << (sync == Sync::last ? " reduced once" : "")
                      << (order == AccumulateOrder::tree ? " in a tree" : ""));
        ShardPlan plan = every(strategy, 2);
        plan.sync = sync;
        plan.accumulate_order = order;
        const Trace run = train_sharded(t, plan, job);
        if (first.losses.empty()) first = run;
        CHECK(run.same_results(first));
      }
      check_close(first, plain);
    }
}

TEST_CASE("case 24: a block that every second step skips") {
  SmallTraining t{.ranks = 2, .steps = 10};
  const auto job = branching(4, [](const MicroBatch& b) {
    return b.step % 2 == 1 ? std::vector<int>{0, 1, 3} : std::vector<int>{0, 1, 2, 3};
  });
  const Trace ddp = train_sharded(t, every("ddp", 2), job);
  check_close(ddp, train_plain(t, job));
  for (const char* strategy : kStrategies)
    for (const int64_t depth : {0, 1, 3}) {
      INFO(strategy << " prefetch " << depth);
      ShardPlan plan = every(strategy, 2);
      plan.prefetch.forward = plan.prefetch.backward = depth;
      const Trace run = train_sharded(t, plan, job);
      CHECK(run.same_results(ddp));
      CHECK(run.live[static_cast<size_t>(Category::gathered)] == 0);
      int64_t unused = 0;
      for (const auto& counters : run.counters) {
        unused += counters.unused;
        CHECK(counters.reused.empty());
      }
      if (std::string(strategy) == "fsdp") CHECK((unused > 0) == (depth > 0));
    }
}

TEST_CASE("case 26: a forward pass without backward leaves only the shards") {
  for (const char* strategy : {"fsdp", "fsdp-keep", "fsdp[reshard_after_forward=2]", "hsdp"})
    for (const bool recorded : {false, true}) {
      INFO(strategy << (recorded ? " recorded" : " in NoGrad"));
      run_thread_ranks({.ranks = 4, .timeout_s = 60}, [&](Rank& rank) {
        const SmallTraining t{.ranks = 4};
        Tape tape(rank.runtime);
        Gpt2 model(tape, test::small_gpt(t));
        const ShardPlan plan = every(strategy, 4);
        DeviceMesh mesh(rank.comm, plan.replicas);
        const auto sharded = fully_shard(model, tape, mesh, plan);
        sharded->init(1);
        const int64_t before = rank.runtime->allocator().live_bytes();
        for (int i = 0; i < 3; ++i) {
          if (recorded) {
            test::small_loss(model, t, i, rank.rank);
            tape.clear();
          } else {
            const NoGrad no_grad(tape);
            test::small_loss(model, t, i, rank.rank);
          }
          sharded->reshard();
          check(rank.runtime->allocator().live_bytes() == before, "after pass", i,
                rank.runtime->allocator().live_bytes(), "not", before);
        }
        check(sharded->take_counters().reused.empty(), "a new pass is no reuse");
      });
    }
}

TEST_CASE("a backward pass that failed on all ranks leaves nothing behind") {
  const SmallTraining t{.ranks = 2};
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    auto job = small_job(t);
    const Trace expected = train_sharded(t, every(strategy, 2), job);
    job.before_step = [&](Gpt2& model, ShardedModule& sharded, int step) {
      Tape& tape = model.wte.weight.tape();
      // Half way through a block, of which some gradients are made.
      const Variable up =
          model.blocks[1].mlp.up.forward(tape.constant(inputs(tape.runtime(), {}, 2, 16)));
      tape.mark([] { fail("not finite"); });
      const Variable loss = test::small_loss(model, t, 50 + step, 0).loss;
      try {
        tape.backward(add(loss, squares(model.blocks[1].mlp.down.forward(up)).loss));
        check(false, "no error");
      } catch (const Error& e) {
        check(std::string(e.what()).find("not finite") != std::string::npos, e.what());
      }
      sharded.finish_gradients();
      sharded.finish_step();
    };
    CHECK(train_sharded(t, every(strategy, 2), job).same_results(expected));
  }
}

TEST_CASE("a rank that is done keeps its shards while others read them") {
  run_thread_ranks({.ranks = 2, .timeout_s = 60}, [&](Rank& rank) {
    const SmallTraining t;
    Tape tape(rank.runtime);
    std::vector<double> losses;
    for (const bool in_turn : {true, false}) {
      {
        Gpt2 model(tape, test::small_gpt(t));
        DeviceMesh mesh(rank.comm);
        const auto sharded = fully_shard(model, tape, mesh, every("fsdp", 2));
        sharded->init(1);
        const NoGrad no_grad(tape);
        if (rank.rank == 1 && !in_turn) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        losses.push_back(test::small_loss(model, t, 0, 0).loss.value().item());
        if (in_turn) rank.comm.barrier({"done"});
      }
      // Over the bytes that were the shards'.
      if (rank.rank == 0) Tensor::full(rank.runtime, {1 << 20}, 1e9);
    }
    check(losses[0] == losses[1], "another loss:", losses[0], losses[1]);
  });
}

TEST_CASE("what forward left in a group is not used in the next step") {
  // Backward reads no bias: with a unit for each parameter, forward alone gathers those.
  const SmallTraining t{.ranks = 4};
  ShardPlan plan = every("fsdp[reshard_after_forward=2,prefetch=none]", 4);
  plan.unit_of = unit_by_parameter;
  CHECK(train_sharded(t, plan).same_results(train_sharded(t, every("ddp", 4))));
}

TEST_CASE("case 27: recompute gathers a block no more often than backward does") {
  SmallTraining t{.ranks = 2, .accumulate = 2};
  for (const auto recompute : {kRecomputeNone, kRecomputeBlock}) {
    t.recompute = recompute;
    const Trace run = train_sharded(t, every("fsdp", 2));
    for (const auto& counters : run.counters) {
      // The root once, each of three blocks forward and backward.
      CHECK(counters.gathers == 2 * (1 + 2 * 3));
      CHECK(counters.reused.empty());
    }
  }
  // A unit for each parameter: a recomputed block reads all of them forward, then backward. That is
  // listed, and from the next pass on each is gathered once and kept.
  ShardPlan plan = every("fsdp", 2);
  plan.unit_of = unit_by_parameter;
  const Trace nested = train_sharded(t, plan);
  CHECK(nested.same_results(train_sharded(t, every("fsdp", 2))));
  CHECK_FALSE(nested.counters[0].reused.empty());
  CHECK(nested.counters[1].reused.empty());
  CHECK(nested.counters[1].gathers < nested.counters[0].gathers);
}

TEST_CASE("case 30: a rank that throws ends all, and its message is the first") {
  const std::string where = GENERATE("forward", "backward", "step");
  for (const char* strategy : kStrategies) {
    INFO(strategy << " in " << where);
    const SmallTraining t{.ranks = 4};
    const ShardPlan plan = every(strategy, 4);
    const std::string text = error_on_all(4, [&](Rank& rank) {
      const auto fail_in = [&](const std::string& place) {
        if (rank.rank == 2 && place == where) fail("the disk is full in ", place);
      };
      Tape tape(rank.runtime);
      Gpt2 model(tape, test::small_gpt(t));
      DeviceMesh mesh(rank.comm, plan.replicas);
      const auto sharded = fully_shard(model, tape, mesh, plan);
      sharded->init(1);
      for (int step = 0; step < 2; ++step) {
        if (step == 1) fail_in("forward");
        const Variable loss = test::small_loss(model, t, step, rank.rank).loss;
        // Half way through backward.
        const Variable more =
            squares(model.blocks[1].mlp.up.forward(tape.constant(inputs(rank.runtime, {}, 2, 16))))
                .loss;
        tape.mark([&] { fail_in("backward"); });
        tape.backward(add(loss, more));
        sharded->finish_gradients();
        fail_in("step");
        sharded->finish_step();
      }
    });
    CHECK_THAT(text, Contains("rank 2: ") && Contains("the disk is full in"));
  }
}

}  // namespace
}  // namespace sherd
