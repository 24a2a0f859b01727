// What users of other frameworks reported of parameters of unusual shapes and kinds.
#include "autograd/ops/cast.h"
#include "nn/layer_norm.h"
#include "tests/dist/toy.h"

namespace sherd {
namespace {

using Catch::Contains;
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

constexpr const char* kStrategies[] = {"ddp",  "zero1",     "zero2", "zero3[resident_below=64]",
                                       "fsdp", "fsdp-keep", "hsdp"};

/// Every strategy gives the bits of the first, and that one what a plain loop gives; every
/// parameter with elements moved.
template <class Model>
Trace check_all(SmallTraining t, const Job<Model>& job, double tolerance = 1e-5) {
  Trace first;
  for (const char* strategy : kStrategies)
    for (const char* group : {"block", "parameter"}) {
      INFO(strategy << " by " << group << " on " << t.ranks);
      ShardPlan plan = every(strategy, t.ranks);
      plan.unit_of = parse_grouping(group, {});
      const Trace now = train_sharded(t, plan, job);
      if (first.losses.empty()) first = now;
      CHECK(now.same_results(first));
    }
  check_close(first, train_plain(t, job), tolerance);
  t.steps = 0;
  const Trace before = train_sharded(t, every("ddp", t.ranks), job);
  for (const auto& [name, value] : before.values) {
    INFO(name << " on " << t.ranks);
    if (name.find('/') == std::string::npos && !value.empty())
      CHECK(value != first.values.at(name));
  }
  return first;
}

/// Parameters of few elements, of which the first three are of one block.
struct Few : Module {
  Parameter one, two, square, scalar;

  explicit Few(Tape& tape)
      : one(tape, {1}, DType::f32, Init::ones()),
        two(tape, {2}, DType::f32, Init::ones()),
        square(tape, {1, 1}, DType::f32, Init::ones()),
        scalar(tape, {}, DType::f32, Init::ones()) {}
  void fields(ModuleVisitor& visit) override {
    visit("one", one);
    visit("two", two);
    visit("square", square);
    visit("scalar", scalar);
  }
  /// x [N, 2]
  Variable forward(const Variable& x) const {
    return mul(add(mul(mul(x, two), one), square), scalar);
  }
};

struct FewEverywhere : Module {
  std::vector<Few> blocks;
  Few root;

  explicit FewEverywhere(Tape& tape) : root(tape) {
    for (int i = 0; i < 2; ++i) blocks.emplace_back(tape);
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override {
    visit("blocks", blocks);
    visit("root", root);
  }
  Variable forward(Variable x) const {
    for (const auto& block : blocks) x = block.forward(x);
    return root.forward(x);
  }
};

template <class Model>
Job<Model> squares_job(int64_t columns, DType dtype = DType::f32) {
  return {.make = [](Tape& tape) { return Model(tape); },
          .loss =
              [columns, dtype](const Model& model, const MicroBatch& b) {
                Tape& tape = parameters(const_cast<Model&>(model))[0].parameter.tape();
                return squares(
                    model.forward(tape.constant(inputs(tape.runtime(), b, 3, columns, dtype))));
              }};
}

TEST_CASE("cases 12 and 16: parameters of one or two elements, and of no dims, train") {
  for (const int ranks : {1, 2, 8})
    check_all({.ranks = ranks, .accumulate = 2}, squares_job<FewEverywhere>(2));
}

/// Two blocks with one weight.
struct TiedBlocks : Module {
  std::vector<Linear> blocks;

  explicit TiedBlocks(Tape& tape) {
    for (int i = 0; i < 3; ++i) blocks.emplace_back(tape, LinearConfig{5, 5});
    blocks[2].weight = blocks[0].weight;
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override { visit("blocks", blocks); }
  Variable forward(Variable x) const {
    for (const auto& block : blocks) x = block.forward(x, Activation::tanh);
    return x;
  }
};

TEST_CASE("case 15: a weight of two blocks has one gradient and one state, and stays tied") {
  const Trace run = check_all({.ranks = 2, .accumulate = 2}, squares_job<TiedBlocks>(5));
  CHECK(run.values.contains("blocks.0.weight/m"));
  CHECK_FALSE(run.values.contains("blocks.2.weight"));
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    run_thread_ranks({.ranks = 2, .timeout_s = 60}, [&](Rank& rank) {
      Tape tape(rank.runtime);
      TiedBlocks model(tape);
      const ShardPlan plan = every(strategy, 2);
      DeviceMesh mesh(rank.comm, plan.replicas);
      const auto sharded = fully_shard(model, tape, mesh, plan);
      sharded->init(1);
      sharded->set_value("blocks.0.weight", Tensor::full(rank.runtime, {5, 5}, 3));
      rank.comm.barrier({"written"});
      sharded->unshard();
      check(model.blocks[2].weight.value().to_vector<float>() == std::vector<float>(25, 3),
            "the other name has another value");
      sharded->reshard();
      rank.comm.barrier({"read"});
    });
  }
}

/// A layer without outputs, and one without inputs behind it.
struct Hollow : Module {
  std::vector<Linear> blocks;

  explicit Hollow(Tape& tape) {
    blocks.emplace_back(tape, LinearConfig{3, 8});
    blocks.emplace_back(tape, LinearConfig{8, 0});
    blocks.emplace_back(tape, LinearConfig{.in = 0, .out = 8, .init = Init::zeros()});
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override { visit("blocks", blocks); }
  Variable forward(const Variable& x) const {
    const Variable y = blocks[0].forward(x);
    return add(y, blocks[2].forward(blocks[1].forward(y)));
  }
};

TEST_CASE("case 17: parameters without elements train, and keep their shape") {
  for (const int ranks : {1, 3}) check_all({.ranks = ranks}, squares_job<Hollow>(3));
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    run_thread_ranks({.ranks = 2, .timeout_s = 60}, [&](Rank& rank) {
      Tape tape(rank.runtime);
      Hollow model(tape);
      const ShardPlan plan = every(strategy, 2);
      DeviceMesh mesh(rank.comm, plan.replicas);
      const auto sharded = fully_shard(model, tape, mesh, plan);
      sharded->init(1);
      for (const auto& p : sharded->trainable()) {
        const Tensor whole = sharded->state(p.name, p.value).full();
        check(whole.shape() == p.shape, "the shape of", p.name);
        sharded->set_value(p.name, whole);
        if (p.shape.numel() > 0) continue;
        Slot slot{.name = p.name, .value = p.value};
        AdamW().prepare(slot);
        for (const auto& s : slot.state) check(s.tensor.numel() == 0, "state of", p.name);
      }
    });
  }
}

/// Matrices of two rows and of two columns.
struct Thin : Module {
  std::vector<Linear> blocks;

  explicit Thin(Tape& tape) {
    blocks.emplace_back(tape, LinearConfig{24, 2});
    blocks.emplace_back(tape, LinearConfig{2, 24});
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override { visit("blocks", blocks); }
  Variable forward(const Variable& x) const {
    return blocks[1].forward(blocks[0].forward(x), Activation::tanh);
  }
};

TEST_CASE("case 18: fewer rows than ranks, and a cut along another dim") {
  SmallTraining t{.ranks = 8, .accumulate = 2};
  const auto job = squares_job<Thin>(24);
  const Trace whole_rows = check_all(t, job);
  for (const double norm : whole_rows.norms) CHECK(norm > t.clip);

  ShardPlan plan = every("fsdp", 8);
  plan.placements = {{.match = "blocks.0.weight", .dim = 1}};
  // A norm of cut rows is added in another order.
  check_close(train_sharded(t, plan, job), whole_rows, 1e-6);
  t.clip = 0;
  const Trace cut = train_sharded(t, plan, job);
  const Trace ddp = train_sharded(t, every("ddp", 8), job);
  CHECK(cut.values == ddp.values);
  CHECK(cut.losses == ddp.losses);
  plan = every("hsdp", 8);
  plan.placements = {{.match = "*.weight", .dim = 1}};
  CHECK(train_sharded(t, plan, job).values == ddp.values);

  run_thread_ranks({.ranks = 8, .timeout_s = 60}, [](Rank& rank) {
    Tape tape(rank.runtime);
    Thin model(tape);
    DeviceMesh mesh(rank.comm);
    ShardPlan by_dim = every("fsdp", 8);
    by_dim.placements = {{.match = "blocks.0.weight", .dim = 1}};
    const auto sharded = fully_shard(model, tape, mesh, by_dim);
    check(sharded->value("blocks.0.weight").local().shape() == Shape({2, 3}), "a part of each row");
    check(sharded->value("blocks.0.bias").local().numel() == (rank.rank < 2 ? 1 : 0), "rows");
  });
  const auto wrong = [&](const char* match) {
    plan.placements = {{.match = match, .dim = 1}};
    train_sharded(t, plan, job);
  };
  CHECK_THROWS_WITH(wrong("*.bias"), Contains("a dim that the parameter does not have") &&
                                         Contains("blocks.0.bias"));
  CHECK_THROWS_WITH(wrong("*.wait"), Contains("no parameter has a name that matches *.wait; the "
                                              "first is blocks.0.weight"));
}

TEST_CASE("case 19: in half precision ranks without a row of a parameter take part") {
  SmallTraining t{.ranks = 8};
  t.dtype = DType::f16;
  const Trace ddp = train_sharded(t, every("ddp", 8));
  for (const char* strategy : kStrategies) {
    INFO(strategy);
    CHECK(train_sharded(t, every(strategy, 8)).same_results(ddp));
  }
  check_close(ddp, train_plain(t, small_job(t)), 1e-2);
}

TEST_CASE("case 20: frozen for a forward pass and unfrozen again is as if it never was") {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const char* strategy : {"ddp", "zero2", "fsdp", "fsdp[reshard_after_forward=2]"}) {
      INFO(strategy);
      SmallTraining t{.ranks = 4};
      t.dtype = dtype;
      auto job = small_job(t);
      const Trace expected = train_sharded(t, every(strategy, 4), job);
      job.before_step = [&](Gpt2& model, ShardedModule& sharded, int step) {
        freeze(model, "*");
        test::small_loss(model, t, 50 + step, 0);
        sharded.reshard();
        unfreeze(model, "*");
      };
      const Trace with = train_sharded(t, every(strategy, 4), job);
      CHECK(with.same_results(expected));
      // It is not mistaken for a pass that uses units twice.
      for (const auto& counters : with.counters) CHECK(counters.reused.empty());
      CHECK(with.resident == expected.resident);
    }
}

TEST_CASE("case 20: unfreezing what was frozen when it was sharded is a clear error") {
  const SmallTraining t{.ranks = 2, .freeze = "blocks.1.*"};
  auto job = small_job(t);
  job.before_step = [](Gpt2& model, ShardedModule&, int step) {
    if (step == 1) unfreeze(model, "blocks.1.*");
  };
  for (const char* strategy : {"ddp", "zero1", "fsdp"}) {
    INFO(strategy);
    CHECK_THROWS_WITH(train_sharded(t, every(strategy, 2), job),
                      Contains("was frozen when fully_shard was called") && Contains("blocks.1."));
  }
}

/// f32 norms beside bf16 matrices.
struct Mixed : Module {
  struct Block : Module {
    LayerNorm norm;
    Linear up;

    explicit Block(Tape& tape)
        : norm(tape, {.channels = 6}), up(tape, {.in = 6, .out = 6, .dtype = DType::bf16}) {}
    void fields(ModuleVisitor& visit) override {
      visit("norm", norm);
      visit("up", up);
    }
    Variable forward(const Variable& x) const {
      return add(x, cast(up.forward(cast(norm.forward(x), DType::bf16)), DType::f32));
    }
  };
  std::vector<Block> blocks;

  explicit Mixed(Tape& tape) {
    for (int i = 0; i < 2; ++i) blocks.emplace_back(tape);
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override { visit("blocks", blocks); }
  Variable forward(Variable x) const {
    for (const auto& block : blocks) x = block.forward(x);
    return x;
  }
};

TEST_CASE("case 22: parameters of one block keep their own dtypes") {
  const Trace run = check_all({.ranks = 3, .accumulate = 2}, squares_job<Mixed>(6), 1e-3);
  CHECK(run.values.contains("blocks.0.up.weight/master"));
  CHECK_FALSE(run.values.contains("blocks.0.norm.weight/master"));
  run_thread_ranks({.ranks = 3, .timeout_s = 60}, [](Rank& rank) {
    Tape tape(rank.runtime);
    Mixed model(tape);
    DeviceMesh mesh(rank.comm);
    const auto sharded = fully_shard(model, tape, mesh, every("fsdp", 3));
    check(sharded->units().size() == 2, "a unit for each block");
    check(sharded->units()[0]->gathered_bytes == (6 + 6) * 4 + (36 + 6) * 2, "bytes of each dtype");
    check(sharded->value("blocks.0.up.weight").local().dtype() == DType::bf16, "bf16");
    check(sharded->value("blocks.0.norm.weight").local().dtype() == DType::f32, "f32");
  });
}

}  // namespace
}  // namespace sherd
