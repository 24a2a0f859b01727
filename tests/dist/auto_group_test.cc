// What group = auto chooses, and why.
#include "dist/auto_group.h"

#include <set>

#include "tests/dist/toy.h"

namespace sherd {
namespace {

using Catch::Contains;
using test::Chain;

constexpr int64_t kWidth = 64;
constexpr int64_t kBlockBytes = (kWidth + 1) * kWidth * 4;

struct Chosen {
  std::vector<std::string> units;  ///< of each parameter
  std::string why;
  size_t count() const { return std::set(units.begin(), units.end()).size(); }
};

Chosen choose(int blocks, const GroupModel& model) {
  Tape tape(Runtime::create({.device = kMeta}));
  Chain chain(tape, blocks, kWidth);
  const auto all = parameters(chain);
  const AutoGroups groups = auto_groups(all, model);
  Chosen chosen{.units = {}, .why = groups.why};
  for (const auto& p : all) chosen.units.push_back(groups.unit_of(p));
  return chosen;
}

TEST_CASE("blocks are joined where a collective's latency costs more than its bytes") {
  // A block's gather and reduction: 2 · 16,640 / 2 bytes.
  const double block_s = static_cast<double>(kBlockBytes) / 10e9;
  // 8 blocks: 3 L 8 / j + j b is least at j = sqrt(24 L / b): 1, 2, 4 and 8 here.
  for (const auto& [joined, ratio] :
       {std::pair(1, 1e-3), {2, 4.0 / 24}, {4, 16.0 / 24}, {8, 64.0 / 24}}) {
    const Chosen chosen = choose(8, {.latency_s = ratio * block_s});
    INFO(chosen.why);
    CHECK(chosen.count() == static_cast<size_t>(8 / joined));
    for (size_t i = 0; i < chosen.units.size(); ++i) {
      const size_t block = i / 2;  // a weight and a bias each
      CHECK(chosen.units[i] ==
            "blocks." + std::to_string(block / static_cast<size_t>(joined) * joined));
    }
  }
}

TEST_CASE("a cap in bytes limits what is joined") {
  // (prefetch + 1) gathered units and two of whole gradients, f32.
  for (const int64_t prefetch : {0, 1, 3})
    for (const int64_t units : {1, 2, 3}) {
      const int64_t cap = (prefetch + 3) * units * kBlockBytes;
      GroupModel model{.prefetch = prefetch, .latency_s = 1, .cap_bytes = cap};
      CHECK(choose(6, model).count() == static_cast<size_t>(6 / units));
      CHECK_THAT(choose(6, model).why, Contains("of " + std::to_string(units) + " block"));
    }
  CHECK(choose(6, {.latency_s = 1}).count() == 1);
}

TEST_CASE("a block beyond the cap is cut between its parameters") {
  const int64_t weight = 4 * kWidth * kWidth * 4;
  Chosen chosen = choose(3, {.cap_bytes = weight});
  CHECK(chosen.count() == 6);
  CHECK_THAT(chosen.why, Contains("6 units of parts of blocks") && !Contains("no unit is smaller"));
  chosen = choose(3, {.cap_bytes = weight - 1});
  CHECK(chosen.count() == 6);
  CHECK_THAT(chosen.why, Contains("no unit is smaller than blocks.2.weight"));
}

TEST_CASE("what is of no block stays the root, and training is the same") {
  const test::SmallTraining t{.ranks = 3};
  ShardPlan plan = test::every("fsdp", 3);
  const test::Trace expected = train_sharded(t, plan);
  Tape tape(Runtime::create({.device = kMeta}));
  Gpt2 model(tape, test::small_gpt(t));
  const auto all = parameters(model);
  const AutoGroups groups = auto_groups(all, {.shards = 3, .latency_s = 1});
  for (const auto& p : all)
    CHECK(groups.unit_of(p) == (unit_by_block(p).empty() ? "" : "blocks.0"));
  plan.unit_of = groups.unit_of;
  CHECK(train_sharded(t, plan).same_results(expected));
}

}  // namespace
}  // namespace sherd
