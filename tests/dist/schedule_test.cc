// When units are gathered, released and kept.
#include "dist/schedule.h"

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

constexpr int kBlocks = 6;

using Path = std::function<std::vector<int>(const MicroBatch&)>;

Job<Chain> job(const Path& path) {
  return {.make = [](Tape& tape) { return Chain(tape, kBlocks, 6); },
          .loss =
              [path](const Chain& model, const MicroBatch& b) {
                Tape& tape = model.blocks[0].weight.tape();
                // Its gradient is wanted, so that backward reads the first block, too.
                return squares(model.forward(tape.leaf(inputs(tape.runtime(), b, 4, 6)), path(b)));
              }};
}

const Path kAll = [](const MicroBatch&) { return std::vector<int>{0, 1, 2, 3, 4, 5}; };

ShardPlan with_depth(const std::string& strategy, int64_t forward, int64_t backward) {
  ShardPlan plan = every(strategy, 2);
  plan.prefetch.forward = forward;
  plan.prefetch.backward = backward;
  return plan;
}

constexpr int64_t kUnitBytes = (36 + 6) * 4;

/// What rank 3 tells of the second step of a chain of two blocks.
std::vector<std::string> told(const std::string& strategy) {
  std::vector<std::string> lines;
  const Job<Chain> job{
      .make = [](Tape& tape) { return Chain(tape, 2, 6); },
      .loss =
          [](const Chain& model, const MicroBatch& b) {
            Tape& tape = model.blocks[0].weight.tape();
            return squares(model.forward(tape.leaf(inputs(tape.runtime(), b, 4, 6)), {0, 1}));
          },
      .before_step =
          [&](Chain&, ShardedModule& sharded, int step) {
            if (sharded.mesh().world().rank() != 3) return;
            sharded.set_narrator(step != 1 ? std::function<void(const std::string&)>()
                                           : [&](const std::string& s) { lines.push_back(s); });
          }};
  train_sharded({.ranks = 4}, every(strategy, 4), job);
  return lines;
}

TEST_CASE("a step is told in words") {
  const std::string b0 =
      ": blocks.0.weight rows 0-1 from rank 0, rows 2-3 from rank 1, rows 4-5 from rank 2; "
      "blocks.0.bias rows 0-1 from rank 0, rows 2-3 from rank 1, rows 4-5 from rank 2";
  std::string b1 = b0;
  for (size_t at = 0; (at = b1.find("blocks.0", at)) != std::string::npos;) b1[at + 7] = '1';
  CHECK(told("fsdp") == std::vector<std::string>{
                            "rank 3 gathers blocks.0" + b0,
                            "rank 3 gathers ahead blocks.1" + b1,
                            "rank 3 uses blocks.0 in forward",
                            "rank 3 releases blocks.0",
                            "rank 3 uses blocks.1 in forward",
                            "rank 3 gathers ahead blocks.0" + b0,
                            "rank 3 uses blocks.1 in backward",
                            "rank 3 reduces blocks.1: gradients become sums over the ranks",
                            "rank 3 releases blocks.1",
                            "rank 3 uses blocks.0 in backward",
                            "rank 3 reduces blocks.0: gradients become sums over the ranks",
                        });
  // Of its own replica's ranks; of its group where forward left a part.
  const std::string own =
      ": blocks.0.weight rows 0-2 from rank 2, rows 3-5 of its own; blocks.0.bias rows 0-2 from "
      "rank 2, rows 3-5 of its own";
  CHECK(told("hsdp[replicate=2]").front() == "rank 3 gathers blocks.0" + own);
  const auto grouped = told("fsdp[reshard_after_forward=2]");
  const auto has = [&](const std::string& line) {
    return std::find(grouped.begin(), grouped.end(), line) != grouped.end();
  };
  CHECK(has("rank 3 releases blocks.0 but for a part"));
  CHECK(has("rank 3 gathers ahead blocks.0: what forward left in the group of 2 ranks"));
}

TEST_CASE("no more units are gathered than prefetch allows, and one") {
  for (const int64_t depth : {0, 1, 2, 4}) {
    INFO("prefetch " << depth);
    const Trace run = train_sharded({}, with_depth("fsdp", depth, depth), job(kAll));
    for (const auto& counters : run.counters) {
      CHECK(counters.most_gathered == depth + 1);
      // The last block is still there when backward begins with it.
      CHECK(counters.gathers == 2 * kBlocks - 1);
      // All but the first of forward.
      CHECK(counters.prefetched == (depth == 0 ? 0 : 2 * kBlocks - 2));
      CHECK(counters.unused == 0);
      CHECK(counters.reused.empty());
    }
  }
}

TEST_CASE("forward and backward have depths of their own") {
  Trace run = train_sharded({}, with_depth("fsdp", 0, 3), job(kAll));
  CHECK(run.counters[1].prefetched == kBlocks - 1);
  CHECK(run.counters[1].most_gathered == 4);
  run = train_sharded({}, with_depth("fsdp", 3, 0), job(kAll));
  CHECK(run.counters[1].prefetched == kBlocks - 1);
  CHECK(run.counters[1].most_gathered == 4);
}

TEST_CASE("a cap in bytes ends what is gathered ahead") {
  for (const int64_t units : {1, 2, 3}) {
    ShardPlan plan = with_depth("fsdp", 5, 5);
    plan.prefetch.bytes = units * kUnitBytes;
    const Trace run = train_sharded({}, plan, job(kAll));
    CHECK(run.counters[1].most_gathered == units);
    plan.prefetch.bytes -= 1;
    // What is used is gathered in any case.
    CHECK(train_sharded({}, plan, job(kAll)).counters[1].most_gathered ==
          std::max<int64_t>(1, units - 1));
  }
}

TEST_CASE("what forward keeps is gathered once") {
  const Trace run = train_sharded({}, with_depth("fsdp-keep", 1, 1), job(kAll));
  for (const auto& counters : run.counters) {
    CHECK(counters.gathers == kBlocks);
    CHECK(counters.most_gathered == kBlocks);
  }
}

TEST_CASE("what was gathered ahead and is not used is released and counted") {
  const SmallTraining t{.steps = 4};
  const Path path = [](const MicroBatch& b) {
    return b.step == 1 ? std::vector<int>{0, 1, 2, 4, 5} : kAll(b);
  };
  const Trace run = train_sharded(t, with_depth("fsdp", 1, 1), job(path));
  CHECK(run.counters[0].unused == 0);
  CHECK(run.counters[1].unused == 1);  // blocks.3 in forward; backward follows what forward did
  for (const auto& counters : run.counters) CHECK(counters.most_gathered <= 2);
  CHECK(run.live[static_cast<size_t>(Category::gathered)] == 0);
}

TEST_CASE(
    "units that run in another order than listed are gathered ahead from the second pass on") {
  const Path path = [](const MicroBatch&) { return std::vector<int>{3, 0, 5, 1, 4, 2}; };
  const Trace run = train_sharded({}, with_depth("fsdp", 1, 1), job(path));
  CHECK(run.counters[0].unused > 0);
  for (size_t i = 1; i < run.counters.size(); ++i) {
    CHECK(run.counters[i].gathers == 2 * kBlocks - 1);
    // The first block of forward is not expected; the last is there when backward begins.
    CHECK(run.counters[i].prefetched == 2 * kBlocks - 2);
    CHECK(run.counters[i].unused == 0);
  }
}

TEST_CASE("a unit that is used again is listed the first time, and kept afterwards") {
  const Path path = [](const MicroBatch&) { return std::vector<int>{0, 1, 2, 0, 3, 4, 5}; };
  for (const int64_t depth : {0, 1}) {
    INFO("prefetch " << depth);
    const Trace run = train_sharded({.steps = 4}, with_depth("fsdp", depth, depth), job(path));
    // Once in forward, once in backward.
    CHECK(run.counters[0].reused == std::vector<std::string>{"blocks.0", "blocks.0"});
    if (depth == 0) CHECK(run.counters[0].gathers == 2 * kBlocks - 1 + 2);
    for (size_t i = 1; i < run.counters.size(); ++i) {
      CHECK(run.counters[i].reused.empty());
      CHECK(run.counters[i].gathers == 2 * (kBlocks - 1) - 1 + 1);
      CHECK(run.counters[i].unused == 0);
      CHECK(run.counters[i].most_gathered == depth + 1);  // the kept one is not counted
    }
    // Each gather was paid for, and nothing else.
    int64_t gathers = 0;
    for (const auto& counters : run.counters) gathers += counters.gathers;
    CHECK(run.bytes[static_cast<size_t>(Traffic::all_gather)] == gathers * kUnitBytes);
  }
}

TEST_CASE("one op may use parameters of several units") {
  struct Pair : Module {
    std::vector<Linear> blocks;
    explicit Pair(Tape& tape) {
      for (int i = 0; i < 3; ++i) blocks.emplace_back(tape, LinearConfig{5, 5, false});
      name_parameters(*this);
    }
    void fields(ModuleVisitor& visit) override { visit("blocks", blocks); }
  };
  const Job<Pair> pair{
      .make = [](Tape& tape) { return Pair(tape); },
      .loss =
          [](const Pair& model, const MicroBatch& b) {
            Tape& tape = model.blocks[0].weight.tape();
            const Variable x =
                model.blocks[2].forward(tape.constant(inputs(tape.runtime(), b, 5, 5)));
            return squares(mul(x, mul(model.blocks[0].weight, model.blocks[1].weight)));
          },
  };
  const SmallTraining t{.ranks = 3, .accumulate = 2};
  const Trace ddp = train_sharded(t, every("ddp", 3), pair);
  for (const int64_t depth : {0, 1}) {
    ShardPlan plan = every("fsdp", 3);
    plan.prefetch.forward = plan.prefetch.backward = depth;
    CHECK(train_sharded(t, plan, pair).same_results(ddp));
  }
}

TEST_CASE("unshard gathers all until reshard, and training goes on as before") {
  SmallTraining t{.ranks = 3, .steps = 4};
  auto with = job(kAll);
  const Trace expected = train_sharded(t, every("fsdp", 3), with);
  with.before_step = [](Chain& model, ShardedModule& sharded, int) {
    sharded.unshard();
    for (const auto& block : model.blocks) block.weight.value().to_vector<float>();
    for (const auto& unit : sharded.units())
      check(unit->state == Unit::State::gathered, "not gathered:", unit->label());
    sharded.reshard();
    for (const auto& unit : sharded.units())
      check(unit->state == Unit::State::released, "not released:", unit->label());
  };
  const Trace run = train_sharded(t, every("fsdp", 3), with);
  CHECK(run.same_results(expected));
  CHECK(run.resident == expected.resident);
  // What stays gathered would miss the step.
  with.before_step = [](Chain&, ShardedModule& sharded, int) { sharded.unshard(); };
  CHECK_THROWS_WITH(train_sharded(t, every("fsdp", 3), with), Catch::Contains("reshard()"));
}

}  // namespace
}  // namespace sherd
