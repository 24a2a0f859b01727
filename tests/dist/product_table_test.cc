// The whole product of strategies, units, prefetch, recompute and sync, on 1 to 8 thread ranks: 20
// steps each, with dropout and 4 micro-batches, give the same bits, and what a plain loop without
// //dist gives within a tolerance.
#include <cmath>
#include <cstdio>
#include <map>

#include "autograd/ops/linear_cross_entropy.h"
#include "autograd/recompute.h"
#include "base/progress.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "tests/dist/options.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using test::Job;
using test::kSteps;
using test::MicroBatch;
using test::OptionRow;
using test::Options;
using test::OptionTable;
using test::SmallTraining;
using test::Trace;

constexpr int64_t kWidth = 5, kHidden = 6, kVocab = 11, kRows = 3;

/// x + down(dropout(tanh(up(x))))
struct TinyBlock : Module {
  Linear up, down;

  explicit TinyBlock(Tape& tape) : up(tape, {kWidth, kHidden}), down(tape, {kHidden, kWidth}) {}
  void fields(ModuleVisitor& visit) override {
    visit("up", up);
    visit("down", down);
  }
  Variable forward(const Variable& x, double p, const ForwardOptions& options) const {
    const Variable h = Dropout(p).forward(up.forward(x), options);
    return add(x, down.forward(h, Activation::tanh));
  }
};

/// The least that has a tied table, blocks, dropout and recompute, and rows that few numbers of
/// ranks divide.
struct TinyModel : Module {
  Embedding table;
  std::vector<TinyBlock> blocks;
  Parameter head;  ///< the table's weight
  Parameter scale;

  explicit TinyModel(Tape& tape)
      : table(tape, {.rows = kVocab, .channels = kWidth, .init = Init::normal(0.5)}),
        head(table.weight),
        scale(tape, {}, DType::f32, Init::ones()) {
    for (int i = 0; i < 2; ++i) blocks.emplace_back(tape);
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override {
    visit("table", table);
    visit("blocks", blocks);
    visit("scale", scale);
    visit("head.weight", head);
  }
};

Job<TinyModel> tiny_job(const SmallTraining& t) {
  const auto loss = [t](const TinyModel& model, const MicroBatch& b) {
    const RuntimePtr& runtime = model.table.weight.runtime();
    const auto tokens = [&](int64_t from) {
      std::vector<int32_t> tokens;
      for (int64_t i = 0; i < kRows; ++i)
        tokens.push_back(static_cast<int32_t>((from + 7 * b.step + 3 * b.g + 5 * i) % kVocab));
      return Tensor::from<int32_t>(runtime, {kRows}, tokens);
    };
    const ForwardOptions options{.training = true,
                                 .key = RandomKey{7, 0}
                                            .derive(static_cast<uint64_t>(b.step))
                                            .derive(static_cast<uint64_t>(b.g))};
    Variable x = mul(model.table.forward(tokens(0)), model.scale);
    for (size_t i = 0; i < model.blocks.size(); ++i) {
      const auto block = [&block = model.blocks[i], p = t.dropout,
                          o = options.at(i)](const std::vector<Variable>& in) {
        return block.forward(in[0], p, o);
      };
      x = t.recompute == kRecomputeBlock ? recompute("block", {x}, block) : block({x});
    }
    return linear_cross_entropy(x, model.head, tokens(1));
  };
  return {.make = [](Tape& tape) { return TinyModel(tape); }, .loss = loss};
}

/// What a plain loop differs by: it adds the same micro-batches' gradients one by one, the ranks in
/// a tree, and 20 steps of AdamW carry that on.
constexpr double kLossTolerance = 1e-6;    // relative
constexpr double kNormTolerance = 1e-5;    // relative
constexpr double kWeightTolerance = 1e-6;  // absolute; a step moves a weight by up to 1e-2

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
  std::printf("weights and moments differ from the plain loop's by up to %.1e\n", worst);
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
  const auto job_of = [](const Options& o) { return tiny_job(test::training_of(o)); };
  std::vector<ShardPlan> plans;
  for (const Options& o : rows) plans.push_back(test::plan_of(o, job_of(o)));
  run_thread_ranks({.ranks = ranks, .timeout_s = 60}, [&](Rank& rank) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const Options& o = rows[i];
      const Trace trace = test::train_on(rank, test::training_of(o), plans[i], job_of(o));
      if (rank.rank != 0) continue;
      ++run;
      const auto [reference, first] = references.try_emplace(o.sync, trace);
      if (!first && !trace.same_results(reference->second)) different.push_back(o.name());
    }
  });
  for (const auto& name : different) FAIL_CHECK("not the bits of ddp: " << name);
  const Trace plain = test::train_plain(test::training_of(rows.front()), job_of(rows.front()));
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
