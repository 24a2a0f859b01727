// What users of other frameworks reported of gradients, norms and weights of losses.
#include <chrono>
#include <cmath>
#include <thread>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/linear_cross_entropy.h"
#include "autograd/ops/reduce.h"
#include "dist/reduce.h"
#include "nn/embedding.h"
#include "optim/param_groups.h"
#include "tests/dist/toy.h"

namespace sherd {
namespace {

using test::check_close;
using test::every;
using test::Job;
using test::MicroBatch;
using test::small_job;
using test::SmallTraining;
using test::Trace;
using test::train_plain;
using test::train_sharded;

constexpr const char* kStrategies[] = {"ddp",  "zero1",     "zero2", "zero3[resident_below=100]",
                                       "fsdp", "fsdp-keep", "hsdp"};

/// Every strategy gives the bits of the first, and that one what a plain loop gives.
template <class Model>
Trace check_all(const SmallTraining& t, const Job<Model>& job, double tolerance = 1e-5) {
  Trace first;
  for (const char* strategy : kStrategies) {
    INFO(strategy << " on " << t.ranks);
    const Trace now = train_sharded(t, every(strategy, t.ranks), job);
    if (first.losses.empty()) first = now;
    CHECK(now.same_results(first));
  }
  check_close(first, train_plain(t, job), tolerance);
  return first;
}

TEST_CASE("case 1: the norm is that of the whole gradient, on every rank") {
  // train_sharded() compares the ranks' norms.
  const SmallTraining t{.ranks = 4};
  const Trace sharded = check_all(t, small_job(t));
  // The norm of one rank's rows alone is another number.
  run_thread_ranks({.ranks = 4, .timeout_s = 60}, [&](Rank& rank) {
    Tape tape(rank.runtime);
    Gpt2 model(tape, test::small_gpt(t));
    init_parameters(model, 1);
    DeviceMesh mesh(rank.comm);
    const auto module = fully_shard(model, tape, mesh, every("fsdp", 4));
    const LossResult loss = test::small_loss(model, t, 0, rank.rank);
    tape.backward(loss.loss);
    module->finish_gradients();
    std::vector<Slot> slots;
    for (const auto& p : module->trainable())
      slots.push_back({.name = p.name, .value = p.value, .grad = p.norm_grad});
    const double scale = 1.0 / static_cast<double>(loss.tokens * rank.size);
    const double alone = grad_norm(slots, scale, NormKind::two).norm;
    check(alone < 0.9 * sharded.norms[0], "a quarter of the gradient has the whole norm");
    module->finish_step();
  });
}

TEST_CASE("case 2: strategies clip alike, with the 2-norm and the maximum norm") {
  SmallTraining t{.ranks = 3, .steps = 10};
  for (const NormKind norm : {NormKind::two, NormKind::infinity}) {
    t.norm = norm;
    t.clip = norm == NormKind::two ? 0.1 : 0.02;
    const Trace clipped = check_all(t, small_job(t), 1e-4);
    for (const double n : clipped.norms) CHECK(n > t.clip);
    t.clip = 0;
    CHECK_FALSE(train_sharded(t, every("fsdp", 3)).same_results(clipped));
  }
}

/// A table that is also the head, blocks, and layers that nothing uses, at the root and in a unit
/// of their own.
struct TiedModel : Module {
  Embedding table;
  std::vector<Linear> blocks;
  Linear unused;
  std::vector<Linear> spare;
  Parameter head;

  explicit TiedModel(Tape& tape)
      : table(tape, {.rows = 11, .channels = 6, .init = Init::normal(0.5)}),
        unused(tape, {6, 6}),
        head(table.weight) {
    for (int i = 0; i < 2; ++i) blocks.emplace_back(tape, LinearConfig{6, 6});
    spare.emplace_back(tape, LinearConfig{6, 5});
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override {
    visit("table", table);
    visit("blocks", blocks);
    visit("unused", unused);
    visit("spare", spare);
    visit("head.weight", head);
  }
  LossResult loss(const Tensor& tokens, const Tensor& targets) const {
    Variable x = table.forward(tokens);
    for (const auto& block : blocks) x = block.forward(x, Activation::tanh);
    return linear_cross_entropy(x, head, targets);
  }
};

Tensor tokens_of(const RuntimePtr& runtime, const MicroBatch& b, int64_t n, int64_t vocab,
                 int64_t skip) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < n; ++i)
    tokens.push_back(static_cast<int32_t>(((b.step * 31 + b.g * 7 + i) * (i + skip + 3)) % vocab));
  return Tensor::from<int32_t>(runtime, {n}, tokens);
}

Job<TiedModel> tied_job() {
  return {.make = [](Tape& tape) { return TiedModel(tape); },
          .loss =
              [](const TiedModel& model, const MicroBatch& b) {
                const RuntimePtr& runtime = model.table.weight.runtime();
                return model.loss(tokens_of(runtime, b, 5, 11, 0), tokens_of(runtime, b, 5, 11, 1));
              }};
}

TEST_CASE("case 3: accumulation with a tied and with unused layers is alike in all strategies") {
  SmallTraining t{.ranks = 2, .accumulate = 4, .steps = 4};
  const Trace run = check_all(t, tied_job());
  CHECK_FALSE(run.values.contains("head.weight"));
  // Nothing used it: neither moved nor decayed.
  t.steps = 0;
  const Trace before = train_sharded(t, every("fsdp", 2), tied_job());
  for (const char* name : {"unused.weight", "spare.0.weight"})
    CHECK(run.values.at(name) == before.values.at(name));
  CHECK(run.values.at("table.weight") != before.values.at("table.weight"));
  // One reduction a step, too.
  t.steps = 4;
  ShardPlan plan = every("ddp", 2);
  plan.sync = Sync::last;
  const Trace last = train_sharded(t, plan, tied_job());
  for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
    plan = every(strategy, 2);
    plan.sync = Sync::last;
    CHECK(train_sharded(t, plan, tied_job()).same_results(last));
  }
}

TEST_CASE("case 4: norms of known steps") {
  // Of a plain loop when this was written: a change that moves all strategies shows, too.
  constexpr double kNorms[] = {1.0853276, 0.7004250, 0.5906179};
  const SmallTraining t{.ranks = 2, .accumulate = 2};
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    const Trace run = train_sharded(t, every(strategy, 2));
    REQUIRE(run.norms.size() == 3);
    for (size_t i = 0; i < 3; ++i) CHECK(run.norms[i] == Approx(kNorms[i]).epsilon(1e-4));
  }
}

TEST_CASE("case 5: the caller decides after how many backward passes a step is over") {
  SmallTraining t{.ranks = 2, .steps = 4};
  t.micro_batches = [](int step) {
    return std::vector<int>{3, 1, 5, 2}[static_cast<size_t>(step)];
  };
  check_all(t, small_job(t));
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    INFO(strategy);
    ShardPlan plan = every(strategy, 2);
    plan.accumulate_order = AccumulateOrder::tree;
    check_close(train_sharded(t, plan), train_plain(t, small_job(t)));
  }
}

TEST_CASE("case 6: results do not depend on when transfers end") {
  SmallTraining t{.ranks = 3, .accumulate = 2, .steps = 4};
  const Trace expected = train_sharded(t, every("zero2", 3));
  // The more bytes, the later; ranks come when they like.
  t.link = Link{.gbps = 0.5, .latency_us = 20};
  auto job = small_job(t);
  job.loss = [loss = job.loss](const Gpt2& model, const MicroBatch& b) {
    std::this_thread::sleep_for(std::chrono::microseconds((b.step * 7 + b.g * 13) % 5 * 200));
    return loss(model, b);
  };
  for (const char* strategy : {"zero2", "fsdp", "fsdp[prefetch=3]", "fsdp[prefetch=none]"}) {
    INFO(strategy);
    ShardPlan plan = every(strategy, 3);
    plan.unit_of = unit_by_parameter;
    CHECK(train_sharded(t, plan, job).same_results(expected));
  }
}

TEST_CASE("case 7: the size of units changes no weight") {
  const SmallTraining t{.ranks = 3, .accumulate = 2};
  const RuntimePtr runtime = Runtime::create({});
  Tape tape(runtime);
  Gpt2 model(tape, test::small_gpt(t));
  const auto all = parameters(model);
  const int64_t whole = count_parameters(model).total * 4;
  const Trace expected = train_sharded(t, every("fsdp", 3));
  for (const char* strategy : {"zero2", "fsdp"})
    for (const auto& [least, most] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {0, 100}, {1000, 3000}, {whole, whole}, {5 * whole, 5 * whole}}) {
      INFO(strategy << " bytes(" << least << ',' << most << ')');
      ShardPlan plan = every(strategy, 3);
      plan.unit_of = units_by_bytes(all, least, most);
      CHECK(train_sharded(t, plan).same_results(expected));
    }
}

/// The small GPT, with `kept` of a micro-batch's 16 targets and the others masked.
Job<Gpt2> masked_job(const SmallTraining& t, const std::function<int(const MicroBatch&)>& kept) {
  return {.make = [t](Tape& tape) { return Gpt2(tape, test::small_gpt(t)); },
          .loss =
              [t, kept](const Gpt2& model, const MicroBatch& b) {
                const RuntimePtr& runtime = model.wte.weight.runtime();
                const Tensor all = test::small_tokens(runtime, t, b.step, b.g);
                auto targets = all.slice(1, 1, 9).to_vector<int32_t>();
                for (size_t i = static_cast<size_t>(kept(b)); i < targets.size(); ++i)
                  targets[i] = -1;
                return model.loss(all.slice(1, 0, 8).contiguous(),
                                  Tensor::from<int32_t>(runtime, {t.batch, 8}, targets));
              }};
}

TEST_CASE("case 8: each token weighs the same, whatever rank or micro-batch it is in") {
  const SmallTraining t{.ranks = 2, .accumulate = 2, .steps = 4};
  const auto kept = [](const MicroBatch& b) {
    if (b.step == 2 && b.rank == 1) return 0;  // none of this rank
    if (b.k == 1) return b.rank == 0 ? 16 : 0;
    return b.rank == 0 ? 5 : 1;
  };
  const Trace run = check_all(t, masked_job(t, kept));
  for (const double loss : run.losses) CHECK(loss > 0);
  // None at all.
  const Trace none =
      check_all(t, masked_job(t, [](const MicroBatch& b) { return b.step == 1 ? 0 : 3; }));
  CHECK(none.losses[1] == 0);
  CHECK(none.norms[1] == 0);
  for (const auto& [name, values] : none.values)
    for (const float v : values)
      if (!std::isfinite(v)) FAIL("not finite: " << name);
}

TEST_CASE("case 9: a short last window is divided by what it saw, and leaves nothing") {
  SmallTraining t{.ranks = 2, .steps = 6};
  t.micro_batches = [](int step) { return step % 3 == 2 ? 2 : 4; };  // 10 batches, twice
  check_all(t, small_job(t));
  // Reduced once a step, also where the loop learns too late that the data has ended.
  ShardPlan plan = every("ddp", 2);
  plan.sync = Sync::last;
  const Trace last = train_sharded(t, plan);
  check_close(last, train_plain(t, small_job(t)));
  t.knows_last = false;
  for (const char* strategy : kStrategies) {
    if (std::string(strategy) == "hsdp") continue;
    INFO(strategy);
    plan = every(strategy, 2);
    plan.sync = Sync::last;
    CHECK(train_sharded(t, plan).same_results(last));
  }
}

/// One weight per rank's input of ones: its gradient is what the loss is multiplied by.
struct Slope : Module {
  Parameter weight;
  explicit Slope(Tape& tape) : weight(tape, {16, 3}, DType::f32, Init::zeros()) {
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override { visit("weight", weight); }
};

/// The sum over `ranks` of gradients whose elements are `each(rank)`, reduced in `wire`.
std::vector<double> reduced(const std::string& strategy, int ranks, DType wire,
                            const std::function<double(int)>& each) {
  std::vector<double> sum;
  run_thread_ranks({.ranks = ranks, .timeout_s = 60}, [&](Rank& rank) {
    Tape tape(rank.runtime);
    Slope model(tape);
    ShardPlan plan = every(strategy, ranks);
    plan.reduce = wire;
    DeviceMesh mesh(rank.comm, plan.replicas);
    const auto sharded = fully_shard(model, tape, mesh, plan);
    sharded->init(1);
    tape.backward(sherd::sum(scale(model.weight, each(rank.rank))));
    sharded->finish_gradients();
    const auto whole =
        sharded->state("weight", sharded->trainable()[0].grad).full().to_vector<double>();
    if (rank.rank == 0) sum = whole;
    sharded->finish_step();
  });
  return sum;
}

TEST_CASE("case 10: sums of many ranks do not overflow in f16 where they do not in f32") {
  constexpr int N = 8;
  const auto large = [](int rank) { return 2e4 + 16 * rank; };
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    const auto f32 = reduced(strategy, N, DType::f32, large);
    const auto f16 = reduced(strategy, N, DType::f16, large);
    REQUIRE(f32.size() == 48);
    for (size_t i = 0; i < f32.size(); ++i) {
      CHECK(f32[i] == 8 * 2e4 + 16 * 28);
      // Beyond f16's 65504; each half is within 2^-11 of what it stands for.
      CHECK(f16[i] == Approx(f32[i]).epsilon(0x1p-10));
    }
    // What is divided out is a power of two, so it costs no bit of numbers that f16 holds.
    const auto small = [](int rank) { return 0.25 + rank; };
    CHECK(reduced(strategy, N, DType::f16, small) == reduced(strategy, N, DType::f32, small));
    // Three ranks: 4 is divided out.
    if (std::string(strategy) != "hsdp")
      CHECK(reduced(strategy, 3, DType::f16, small) == std::vector<double>(48, 3.75));
  }
  // The rule: the least power of two that is no less than the ranks, and for f16 alone.
  CHECK(wire_shift(DType::f16, 1) == 0);
  CHECK(wire_shift(DType::f16, 3) == 2);
  CHECK(wire_shift(DType::f16, 8) == 3);
  CHECK(wire_shift(DType::bf16, 8) == 0);
  CHECK(wire_shift(DType::f32, 8) == 0);
}

TEST_CASE("case 13: cuts count in 64 bits") {
  constexpr int64_t kRows = 3'000'000'007;
  const Cut cut = even_cut(5, kRows, 7, 8);
  CHECK(cut.dim() == kRows);
  int64_t sum = 0;
  for (int r = 0; r < 8; ++r) {
    CHECK(cut.begin(r) == r * int64_t{375'000'001});
    sum += cut.numel(r);
  }
  CHECK(sum == 5 * 7 * kRows);
  CHECK(cut.numel() == sum);
  CHECK(cut.size(7) == kRows - 7 * int64_t{375'000'001});

  // Without bytes: a table of 12e9 elements.
  run_thread_ranks({.ranks = 2, .timeout_s = 60}, [](Rank& rank) {
    struct Table : Module {
      Parameter weight;
      explicit Table(Tape& tape) : weight(tape, {3'000'000'001, 4}, DType::bf16, Init::normal(1)) {}
      void fields(ModuleVisitor& visit) override { visit("weight", weight); }
    };
    Tape tape(Runtime::create({.device = kMeta}));
    Table table(tape);
    DeviceMesh mesh(rank.comm);
    const auto sharded = fully_shard(table, tape, mesh, every("fsdp", 2));
    check(sharded->units()[0]->gathered_bytes == 24'000'000'008, "bytes of the whole");
    check(sharded->value("weight").local().size(0) == 1'500'000'001 - rank.rank,
          "rows of the part");
    check(tape.runtime()->allocator().live_by_category()[static_cast<size_t>(Category::params)] ==
              Allocator::rounded(static_cast<size_t>(1'500'000'001 - rank.rank) * 8),
          "bytes of the part");
  });

  // A 32-bit index would begin again.
  const RuntimePtr runtime = Runtime::create({});
  const Tensor low = Tensor::zeros(runtime, {2, 8}), high = Tensor::zeros(runtime, {2, 8});
  fill_initial(low, Init::normal(1), initial_key(1, "w"), 5);
  fill_initial(high, Init::normal(1), initial_key(1, "w"), 5 + (int64_t{1} << 29));
  CHECK(low.to_vector<float>() != high.to_vector<float>());
}

TEST_CASE("case 14: decay goes by the shape of the whole parameter") {
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    std::string table;
    run_thread_ranks({.ranks = 8, .timeout_s = 60}, [&](Rank& rank) {
      Tape tape(rank.runtime);
      // On 8 ranks a part of [8, 3] or of [3, 8] looks like a vector, or has no rows.
      struct Model : Module {
        Linear a, b;
        explicit Model(Tape& t) : a(t, {3, 8}), b(t, {8, 3}) {}
        void fields(ModuleVisitor& visit) override {
          visit("a", a);
          visit("b", b);
        }
      } model(tape);
      init_parameters(model, 1);
      const ShardPlan plan = every(strategy, 8);
      DeviceMesh mesh(rank.comm, plan.replicas);
      const auto sharded = fully_shard(model, tape, mesh, plan);
      std::vector<ParamInfo> infos;
      for (const auto& p : sharded->trainable()) infos.push_back({p.name, p.shape});
      const auto groups = param_groups(infos, {.weight_decay = 0.1});
      for (const char* name : {"a.weight", "b.weight"})
        check(group_of(groups, name).weight_decay == 0.1, name);
      for (const char* name : {"a.bias", "b.bias"})
        check(group_of(groups, name).weight_decay == 0, name);
      if (rank.rank == 7) table = param_group_table(groups);
    });
    CHECK(table.find("[8, 3]") != std::string::npos);
  }
}

}  // namespace
}  // namespace sherd
