// The whole product of strategies, units, prefetch, recompute and sync, on 1 to 8 thread ranks: 20
// steps each, with dropout and 4 micro-batches, give the same bits, and what a plain loop without
// //dist gives within a tolerance.
#include <cmath>
#include <cstdio>
#include <map>

#include "base/progress.h"
#include "tests/dist/options.h"

namespace sherd {
namespace {

using test::OptionRow;
using test::Options;
using test::OptionTable;
using test::Trace;

constexpr int kSteps = 20;

/// What a plain loop differs by: it adds the same micro-batches' gradients one by one, the ranks in
/// a tree, and 20 steps of AdamW carry that on.
constexpr double kLossTolerance = 1e-5;    // relative
constexpr double kNormTolerance = 1e-4;    // relative
constexpr double kWeightTolerance = 1e-3;  // absolute; a step moves a weight by up to 1e-2

void check_near_plain(const Trace& run, const Trace& plain) {
  REQUIRE(run.losses.size() == kSteps);
  for (size_t i = 0; i < kSteps; ++i) {
    CHECK(run.losses[i] == Approx(plain.losses[i]).epsilon(kLossTolerance));
    CHECK(run.norms[i] == Approx(plain.norms[i]).epsilon(kNormTolerance));
  }
  REQUIRE(run.values.size() == plain.values.size());
  double worst = 0;
  for (const auto& [name, values] : plain.values) {
    const auto& got = run.values.at(name);
    REQUIRE(got.size() == values.size());
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, static_cast<double>(std::abs(got[i] - values[i])));
  }
  CHECK(worst <= kWeightTolerance);
}

OptionTable table_for(int ranks) {
  OptionTable table;
  table.ranks = {ranks};
  table.dropouts = {0.1};
  table.dtypes = table.wires = {DType::f32};
  table.orders = {AccumulateOrder::sequential};
  table.tied = {true};
  if (ranks != 4)
    std::erase_if(table.strategies, [](const auto& s) { return s.starts_with("hsdp"); });
  return table;
}

/// Runs all of the table's rows in one group of ranks; returns how many.
int run_table(int ranks) {
  const OptionTable table = table_for(ranks);
  std::vector<Options> rows;
  test::each_row(
      table.counts(), [&](const OptionRow& row) { return test::is_valid(table.at(row)); },
      [&](const OptionRow& row) { rows.push_back(table.at(row)); });
  std::map<Sync, Trace> references;
  int run = 0;
  std::vector<std::string> different;
  run_thread_ranks({.ranks = ranks, .timeout_s = 60}, [&](Rank& rank) {
    for (const Options& o : rows) {
      const auto t = test::training_of(o, kSteps);
      const Trace trace = test::train_on(rank, t, test::plan_of(o), test::small_job(t));
      if (rank.rank != 0) continue;
      ++run;
      const auto [reference, first] = references.try_emplace(o.sync, trace);
      if (!first && !trace.same_results(reference->second)) different.push_back(o.name());
    }
  });
  for (const auto& name : different) FAIL_CHECK("not the bits of ddp: " << name);
  const auto t = test::training_of(rows.front(), kSteps);
  const Trace plain = test::train_plain(t, test::small_job(t));
  for (const auto& [sync, reference] : references) check_near_plain(reference, plain);
  return run;
}

// 3 strategies that gather nothing × 4 groupings × 4 of recompute and sync, and those that gather
// × 4 × 5 prefetches × 4.
constexpr int expected(int gathering) { return 3 * 4 * 4 + gathering * 4 * 5 * 4; }

void check_table(int ranks, int gathering) {
  const double begin_s = steady_seconds();
  const int run = run_table(ranks);
  std::printf("%d combinations on %d ranks in %.1f s\n", run, ranks, steady_seconds() - begin_s);
  CHECK(run == expected(gathering));
}

// zero3, fsdp, fsdp that keeps; on 4 also k = 2, k = 4, hsdp 4 × 1, 2 × 2, 1 × 4; on 8 also k =
// 2, 4.
TEST_CASE("the whole product on 1 rank") { check_table(1, 3); }
TEST_CASE("the whole product on 2 ranks") { check_table(2, 4); }
TEST_CASE("the whole product on 3 ranks") { check_table(3, 3); }
TEST_CASE("the whole product on 4 ranks") { check_table(4, 8); }
TEST_CASE("the whole product on 8 ranks") { check_table(8, 5); }

}  // namespace
}  // namespace sherd
