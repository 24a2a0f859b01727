#include "train/setup.h"

#include "base/machine.h"
#include "base/toml.h"
#include "dist/comm/thread_ranks.h"
#include "nn/models/gpt2.h"
#include "optim/adamw.h"
#include "optim/lion.h"
#include "optim/sgd.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

RunConfig config(const std::vector<std::string>& sets = {}) {
  return read_run_config("[data]\nfiles = [\"x\"]\n", "c.toml", sets);
}

}  // namespace

TEST_CASE("the runtime is what [run] says") {
  CHECK(make_runtime({})->pool().threads() == usable_cores());
  CHECK(make_rank_runtime(rank_options({}), 1000)->pool().threads() == 1);
  CHECK(make_runtime({})->isa() == default_isa());
  const RunConfig c = config({"run.threads_per_rank=3", "run.isa=base", "run.memory_limit=4MiB"});
  const RuntimePtr runtime = make_runtime(c.run);
  CHECK(runtime->pool().threads() == 3);
  CHECK(runtime->isa() == Isa::base);
  CHECK(runtime->allocator().limit() == 4 << 20);
}

TEST_CASE("halves: wires, what backward starts from, and how it is said") {
  const RunConfig plain = config();
  CHECK(make_plan(plain, {}).reduce == DType::f32);
  CHECK(backward_scale(plain, 1) == 1);
  CHECK(scaling_rules(plain).empty());
  CHECK(make_plan(config({"precision.reduce=bf16"}), {}).reduce == DType::bf16);

  const RunConfig wire = config({"precision.reduce=f16", "dist.ranks=6"});
  CHECK(make_plan(wire, {}).reduce == DType::f16);
  CHECK(backward_scale(wire, 1) == 1);
  CHECK(scaling_rules(wire) ==
        std::vector<std::string>{"gradients are divided by 8 before they travel in f16, and their "
                                 "sums over 6 ranks multiplied by it"});
  // 3 x 50 tokens: the next power of two is 2^8.
  const RunConfig half = config({"precision.compute=f16", "precision.loss_scale=16",
                                 "train.micro_batch=3", "model.context=50"});
  CHECK(backward_scale(half, 16) == 0x1p-4);
  CHECK(scaling_rules(half) ==
        std::vector<std::string>{
            "backward starts from 2^-4: loss scale 16, by 150 tokens a micro-batch, up to a power "
            "of two, smaller in f16; undone exactly before the norm"});
  CHECK(make_loss_scale(config({"precision.loss_scale=1024"}).precision).value() == 1024);
  CHECK(make_loss_scale(plain.precision).value() == 1);
  CHECK_FALSE(make_loss_scale(half.precision).dynamic());
}

TEST_CASE("f16 computes with a dynamic loss scale unless told otherwise, and says so") {
  const RunConfig c = config({"precision.compute=f16", "train.micro_batch=2", "model.context=64"});
  LossScale scale = make_loss_scale(c.precision);
  CHECK(scale.dynamic());
  CHECK(scale.value() == 65536);
  CHECK(backward_scale(c, scale.value()) == 512);
  CHECK(scaling_rules(c) ==
        std::vector<std::string>{
            "backward starts from 2^9: loss scale 65536, halved when gradients overflow, doubled "
            "after 2000 steps without, by 128 tokens a micro-batch, up to a power of two, smaller "
            "in f16; undone exactly before the norm"});
  CHECK_FALSE(
      make_loss_scale(config({"precision.compute=f16", "precision.loss_scale=none"}).precision)
          .dynamic());
  CHECK(make_loss_scale(config({"precision.loss_scale=dynamic"}).precision).dynamic());
}

TEST_CASE("slots: a state for each trainable parameter, no decay for vectors") {
  const RuntimePtr runtime = Runtime::create();
  Tape tape(runtime);
  Gpt2 model(tape, {.layers = 1, .heads = 1, .channels = 8, .vocab = 10, .context = 4});
  freeze(model, "wpe.*");
  const RunConfig c = config({"optim.weight_decay=0.25"});
  const auto optimizer = make_optimizer(c);
  const auto named = parameters(model);
  const auto solo = solo_communicator(runtime);
  DeviceMesh mesh(*solo);
  const auto sharded = fully_shard(model, tape, mesh, make_plan(c, named));
  const auto slots = make_slots(*sharded, group_parameters(named, c.optim), *optimizer).slots();
  CHECK(slots.size() == named.size() - 1);
  for (const Slot& slot : slots) {
    INFO(slot.name);
    CHECK(slot.name != "wpe.weight");
    CHECK(slot.weight_decay == (slot.value.dims() >= 2 ? 0.25 : 0));
    CHECK(slot.state.size() == 2);
    CHECK(slot.state[0].tensor.storage()->category() == Category::optimizer);
  }
  // sgd without momentum has no state.
  const RunConfig plain = config({"optim.name=sgd"});
  CHECK(make_slots(*sharded, group_parameters(named, plain.optim), *make_optimizer(plain))
            .slots()[0]
            .state.empty());
}

TEST_CASE("settings of [dist] without an effect are named") {
  CHECK(without_effect(config()).empty());
  CHECK(without_effect(config({"dist.ranks=4", "dist.strategy=fsdp", "dist.prefetch=2"})).empty());
  struct Row {
    std::vector<std::string> sets;
    std::vector<std::string> keys;
    std::string why;
  };
  const std::vector<Row> rows = {
      {{"dist.strategy=fsdp", "dist.prefetch=2", "dist.prefetch_bytes=5", "dist.group=model",
        "dist.reshard_after_forward=false", "dist.resident_below=1", "dist.link.gbps=1",
        "dist.sync=every", "dist.placement=[{match=\"w\"}]"},
       {"strategy", "prefetch", "prefetch_bytes", "reshard_after_forward", "resident_below",
        "placement", "group", "link", "sync"},
       "there is one rank"},
      {{"dist.ranks=4", "dist.strategy=zero2", "dist.prefetch=2", "dist.resident_below=1"},
       {"prefetch", "resident_below"},
       "zero2 does not shard parameters"},
      {{"dist.ranks=4", "dist.strategy=hsdp[replicate=4]", "dist.prefetch=2"},
       {"prefetch"},
       "each rank is a replica of its own"},
      {{"dist.ranks=4", "dist.strategy=fsdp", "dist.group=model", "dist.prefetch=2",
        "dist.reshard_after_forward=2", "dist.resident_below=1"},
       {"prefetch", "reshard_after_forward"},
       "the whole model is one unit, gathered until backward is over"},
      {{"dist.ranks=4", "dist.strategy=fsdp", "dist.reshard_after_forward=4"},
       {"reshard_after_forward"},
       "there are as many shards"},
      {{"dist.ranks=4", "dist.strategy=fsdp", "dist.prefetch=0", "dist.prefetch_bytes=5"},
       {"prefetch_bytes"},
       "nothing is gathered ahead"},
      {{"dist.ranks=4", "dist.strategy=fsdp", "dist.replicate=4"},
       {"replicate"},
       "fsdp has one replica"},
      {{"dist.ranks=4", "dist.ranks_per_host=2"}, {"ranks_per_host"}, "threads are on one host"},
      {{"dist.ranks=4", "dist.sync=every"}, {"sync"}, "a step has one micro-batch"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> expected;
    for (const auto& key : row.keys)
      expected.push_back("dist." + key + " has no effect: " + row.why);
    CHECK(without_effect(config(row.sets)) == expected);
  }
  std::vector<std::string> tree = {"train.accumulate=2", "train.accumulate_order=tree"};
  CHECK(without_effect(config(tree)) ==
        std::vector<std::string>{
            "train.accumulate_order has no effect: gradients are reduced once, as the sum of a "
            "step's micro-batches; dist.sync = every reduces each"});
  tree.push_back("dist.strategy=fsdp");
  tree.push_back("dist.ranks=2");
  CHECK(without_effect(config(tree)).empty());
}

TEST_CASE("optimizers and schedules are those that are named") {
  const auto made = [](const std::vector<std::string>& sets) {
    return make_optimizer(config(sets));
  };
  CHECK(dynamic_cast<AdamW*>(made({}).get()) != nullptr);
  CHECK(dynamic_cast<Lion*>(made({"optim.name=lion"}).get()) != nullptr);
  CHECK(dynamic_cast<Sgd*>(
            made({"optim.name=sgd", "optim.momentum=0.9", "optim.nesterov=true"}).get()) !=
        nullptr);
  const LrSchedule wsd = make_schedule(config({"optim.schedule=wsd", "run.steps=50"}));
  CHECK(wsd.shape == LrShape::wsd);
  CHECK(wsd.decay == 5);
  CHECK(make_schedule(config({"optim.schedule=wsd", "optim.decay=7"})).decay == 7);
}

TEST_CASE("changed keys are named with both values") {
  const std::string before = write_toml(config());
  CHECK(changed_keys(before, before).empty());
  CHECK(changed_keys(before, write_toml(config({"run.out=elsewhere", "run.name=n"}))).empty());
  const auto changes =
      changed_keys(before, write_toml(config({"optim.lr=0.5", "model.vocab=300"})));
  CHECK(changes ==
        std::vector<std::string>{"model.vocab = 300, was (not set)", "optim.lr = 0.5, was 0.001"});
}

}  // namespace sherd
