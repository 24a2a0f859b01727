// Step 5 of 6: parameters in parts as well, by hand (ZeRO-3, FSDP). All six print the same losses.
//   bazel run -c opt //examples/steps:05_shard_parameters
// What rests is a quarter of everything: 16 n / 4 bytes. A layer's parameters are gathered before
// it is used, in forward and again in backward, and released after. The ops saved handles of them,
// not bytes, so bytes may go and come back. 3/4 · 4 n bytes more travel than in step 4.
// New: Storage allocate and release, Tape::mark. Next: 06_fully_shard.cc
#include "dist/comm/thread_ranks.h"
#include "examples/steps/task.h"
#include "nn/init.h"
#include "optim/adamw.h"

using namespace steps;

/// A parameter whose rows of this rank rest, while the whole comes and goes.
struct Sharded {
  Parameter whole;
  Cut cut;
  Tensor rows;
};

/// What is gathered and released together: a layer.
struct Unit {
  std::string name;
  std::vector<Sharded> parameters;
};

Sharded shard(const NamedParameter& p, const Rank& rank) {
  const Tensor& whole = p.parameter.value();
  const Cut cut = even_cut(1, whole.size(0), whole.shape().columns(1), kRanks);
  Shape shape = whole.shape();
  shape[0] = cut.size(rank.rank);
  const CategoryScope scope(*rank.runtime, Category::params);
  const Tensor rows = Tensor::empty(rank.runtime, shape);
  // A value depends on the seed, the name and its place in the whole: rows are made alone.
  fill_initial(rows, p.parameter.init(), initial_key(kSeed, p.name), cut.begin(rank.rank));
  whole.storage()->recategorize(Category::gathered);
  return {p.parameter, cut, rows};
}

void gather(Unit& unit, Communicator& comm) {
  std::vector<CutTensor> items;
  for (auto& p : unit.parameters) {
    p.whole.value().storage()->allocate();
    items.push_back({p.rows, p.whole.value(), p.cut});
  }
  comm.all_gather(std::move(items), {unit.name, Traffic::all_gather}).event().wait();
}

void release(Unit& unit) {
  for (auto& p : unit.parameters) p.whole.value().storage()->release();
}

void train(Rank& rank) {
  Tape tape(rank.runtime);
  const DeferParameters without_bytes(*rank.runtime);
  Mlp model(tape, mlp_config());
  const Batch batch = batch_of(rank.runtime, rank.rank, kRanks);

  std::vector<Unit> units(model.layers.size());
  for (size_t i = 0; i < units.size(); ++i) units[i].name = "layers." + std::to_string(i);
  std::vector<Slot> slots;
  Work reduction;
  for (const auto& p : parameters(model))
    for (auto& unit : units) {
      if (!p.name.starts_with(unit.name)) continue;
      const Sharded& sharded = unit.parameters.emplace_back(shard(p, rank));
      slots.push_back({.name = p.name, .value = sharded.rows});
      p.parameter.state().take_gradient = [&, i = slots.size() - 1,
                                           cut = sharded.cut](Tensor whole) {  // as in step 4
        const CategoryScope scope(*rank.runtime, Category::grads);
        slots[i].grad = Tensor::empty_like(slots[i].value);
        reduction.event().wait();
        reduction = rank.comm.reduce_scatter({{slots[i].grad, std::move(whole), cut}}, {},
                                             {slots[i].name, Traffic::reduce_scatter});
      };
    }
  AdamW optimizer;

  for (int step = 0; step < kSteps; ++step) {
    Variable x = tape.constant(batch.points);
    for (size_t i = 0; i < units.size(); ++i) {
      Unit& unit = units[i];
      tape.mark([&] { release(unit); });  // passed by backward when it is done with the layer
      gather(unit, rank.comm);
      x = model.layers[i].forward(x, i == 0 ? Activation::none : model.activation);
      release(unit);
      tape.mark([&] { gather(unit, rank.comm); });  // and when it comes to it
    }
    const LossResult result = cross_entropy(x, batch.classes);
    const double sum = sum_over_ranks(rank.comm, result.loss.value().item());
    if (rank.rank == 0) print_loss(step, sum);
    tape.backward(result.loss);
    reduction.event().wait();
    reduction = {};

    if (rank.rank == 0) print_memory(step, *rank.runtime);
    optimizer.step(slots, kLr, 1.0 / kPoints);  // rows only: nothing to communicate
    for (auto& slot : slots) slot.grad = {};
  }
}

int main() { run_thread_ranks({.ranks = kRanks}, train); }
