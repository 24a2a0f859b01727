// What users of other frameworks reported of memory.
#include "nn/embedding.h"
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
constexpr int64_t kWidth = 128;
constexpr int64_t kUnit = (kWidth * kWidth + kWidth) * 4;  // bytes in f32
constexpr int64_t kModel = kBlocks * kUnit;
constexpr int64_t kRows = 4;

/// The most bytes of gradients, seen whenever backward has passed a block.
struct Seen {
  std::array<int64_t, 8> grads{};
  int64_t most() const { return *std::max_element(grads.begin(), grads.end()); }
};

/// Six blocks in which the parameters' bytes are most of all.
Job<Chain> wide(Seen* seen = nullptr) {
  return {.make = [](Tape& tape) { return Chain(tape, kBlocks, kWidth); },
          .loss =
              [seen](const Chain& model, const MicroBatch& b) {
                Tape& tape = model.blocks[0].weight.tape();
                Variable x = tape.leaf(inputs(tape.runtime(), b, kRows, kWidth));
                for (const auto& block : model.blocks) {
                  if (seen != nullptr)
                    tape.mark([seen, &tape, rank = static_cast<size_t>(b.rank)] {
                      const auto live = tape.runtime()->allocator().live_by_category();
                      seen->grads[rank] =
                          std::max(seen->grads[rank], live[static_cast<size_t>(Category::grads)]);
                    });
                  x = block.forward(x, Activation::tanh);
                }
                return squares(x);
              }};
}

/// All that is not parameters, gradients or state in such a step, with every tensor's rounding.
constexpr int64_t kRest = 64 << 10;

TEST_CASE("case 32: reducing every micro-batch keeps gradients in parts; once a step keeps all") {
  constexpr int N = 4;
  const SmallTraining t{.ranks = N, .accumulate = 4};
  for (const char* strategy : {"zero2", "fsdp"}) {
    INFO(strategy);
    ShardPlan plan = parse_strategy(strategy, N);
    CHECK(plan.sync == Sync::every);  // the default
    const int64_t each = train_sharded(t, plan, wide()).peak.bytes;
    plan.sync = Sync::last;
    const int64_t once = train_sharded(t, plan, wide()).peak.bytes;
    // Whole gradients instead of this rank's and two units'.
    CHECK(once - each >= kModel * (N - 1) / N - 2 * kUnit - kRest);
    CHECK(once - each <= kModel + kRest);
    // One micro-batch holds no more than four.
    plan.sync = Sync::every;
    const int64_t one = train_sharded({.ranks = N}, plan, wide()).peak.bytes;
    CHECK(each - one <= kRest);
  }
  // The others' default is once a step: to reduce each micro-batch costs two units, or a shard.
  for (const char* strategy : {"ddp", "zero1"}) {
    INFO(strategy);
    ShardPlan plan = parse_strategy(strategy, N);
    CHECK(plan.sync == Sync::last);
    const int64_t once = train_sharded(t, plan, wide()).peak.bytes;
    plan.sync = Sync::every;
    const int64_t each = train_sharded(t, plan, wide()).peak.bytes;
    const bool zero1 = std::string(strategy) == "zero1";
    CHECK(each - once <= (zero1 ? kModel / N : 0) + 2 * kUnit + kRest);
  }
}

TEST_CASE("case 33: full sharding's peak is what its parts say, and below zero2's") {
  for (const int N : {2, 4})
    for (const int64_t depth : {0, 1, 2}) {
      INFO(N << " ranks, prefetch " << depth);
      const SmallTraining t{.ranks = N};
      ShardPlan plan = every("fsdp", N);
      plan.prefetch.forward = plan.prefetch.backward = depth;
      const int64_t fsdp = train_sharded(t, plan, wide()).peak.bytes;
      const int64_t zero2 = train_sharded(t, every("zero2", N), wide()).peak.bytes;
      const int64_t zero1 = train_sharded(t, every("zero1", N), wide()).peak.bytes;
      const int64_t ddp = train_sharded(t, every("ddp", N), wide()).peak.bytes;
      CHECK(fsdp <= 4 * kModel / N + (depth + 1) * kUnit + 2 * kUnit + kRest);
      CHECK(zero2 <= kModel + 3 * kModel / N + 2 * kUnit + kRest);
      CHECK(fsdp <= zero2 + 2 * kUnit);
      if ((depth + 1) * kUnit < kModel * (N - 1) / N) CHECK(fsdp < zero2);
      CHECK(zero2 <= zero1);
      CHECK(zero1 < ddp);
    }
}

TEST_CASE("case 34: backward never holds more gradients than the shard and two units") {
  constexpr int N = 4;
  for (const int accumulate : {1, 3})
    for (const char* strategy : {"zero2", "fsdp", "hsdp"}) {
      INFO(strategy << ", " << accumulate << " micro-batches");
      Seen seen;
      const ShardPlan plan = every(strategy, N);
      const Trace run = train_sharded({.ranks = N, .accumulate = accumulate}, plan, wide(&seen));
      const int64_t shards = N / plan.replicas;
      const int64_t bound = kModel / shards + 2 * kUnit + kBlocks * 2 * 64;
      CHECK(seen.most() > 0);
      CHECK(seen.most() <= bound);
      CHECK(run.peak.by_category[static_cast<size_t>(Category::grads)] <= bound);
    }
  // What is seen would show more.
  Seen seen;
  train_sharded({.ranks = N}, every("ddp", N), wide(&seen));
  CHECK(seen.most() >= kModel - kUnit);
}

/// Two vocabulary tables at the root.
struct TwoTables : Module {
  Embedding in;
  std::vector<Linear> blocks;
  Linear out;

  explicit TwoTables(Tape& tape)
      : in(tape, {.rows = 512, .channels = 16}), out(tape, {16, 512, false}) {
    for (int i = 0; i < 2; ++i) blocks.emplace_back(tape, LinearConfig{16, 16});
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override {
    visit("in", in);
    visit("blocks", blocks);
    visit("out", out);
  }
  LossResult loss(const Tensor& tokens) const {
    Variable x = in.forward(tokens);
    for (const auto& block : blocks) x = block.forward(x, Activation::tanh);
    return squares(out.forward(x));
  }
};

TEST_CASE("case 35: a cap in bytes keeps two tables from being one buffer") {
  constexpr int64_t kTable = 512 * 16 * 4;
  const auto job = [](int64_t* largest) {
    return Job<TwoTables>{.make = [](Tape& tape) { return TwoTables(tape); },
                          .loss =
                              [](const TwoTables& model, const MicroBatch& b) {
                                return model.loss(Tensor::from<int32_t>(
                                    model.in.weight.runtime(), {4},
                                    std::vector<int32_t>(4, static_cast<int32_t>(b.g + b.step))));
                              },
                          .before_step =
                              [largest](TwoTables&, ShardedModule& sharded, int) {
                                for (const auto& unit : sharded.units())
                                  *largest = std::max(*largest, unit->gathered_bytes);
                              }};
  };
  Tape tape(Runtime::create({}));
  TwoTables model(tape);
  // Of one rank, so that nobody writes it at once.
  const SmallTraining t{.ranks = 1};
  for (const bool capped : {false, true}) {
    ShardPlan plan = every("fsdp", 1);
    if (capped) plan.unit_of = units_by_bytes(parameters(model), 0, kTable);
    int64_t largest = 0;
    train_sharded(t, plan, job(&largest));
    CHECK(largest == (capped ? kTable : 2 * kTable));
  }
  // What is sent at once, and gradients at the peak, shrink with it.
  const SmallTraining two{.ranks = 2};
  auto job2 = job(nullptr);
  job2.before_step = {};
  ShardPlan plan = every("zero2", 2);
  const Trace whole = train_sharded(two, plan, job2);
  plan.unit_of = units_by_bytes(parameters(model), 0, kTable);
  const Trace split = train_sharded(two, plan, job2);
  CHECK(split.same_results(whole));
  CHECK(split.peak.bytes <= whole.peak.bytes - kTable / 2);
}

}  // namespace
}  // namespace sherd
