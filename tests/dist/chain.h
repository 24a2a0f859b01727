// What trainings of ranks share, be they threads or processes: plans, inputs, and small models made
// of linear layers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/reduce.h"
#include "nn/linear.h"
#include "tests/support/sharded_run.h"

namespace sherd::test {

/// Reduced after every micro-batch, so that strategies can be compared.
inline ShardPlan every(const std::string& strategy, int ranks) {
  ShardPlan plan = parse_strategy(strategy, ranks);
  plan.sync = Sync::every;
  return plan;
}

/// Numbers in [-1, 1) that depend on the micro-batch alone.
inline Tensor inputs(const RuntimePtr& runtime, const MicroBatch& b, int64_t rows, int64_t columns,
                     DType dtype = DType::f32) {
  std::vector<float> x;
  auto state = static_cast<uint64_t>(b.step * 1000 + b.g + 1);
  for (int64_t i = 0; i < rows * columns; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x.push_back(static_cast<float>(static_cast<int64_t>(state >> 40) - (1 << 23)) / (1 << 23));
  }
  return Tensor::from<float>(runtime, {rows, columns}, x).to(dtype);
}

/// Σ y², a loss that any output has.
inline LossResult squares(const Variable& y) { return {sum(mul(y, y)), y.size(0)}; }

/// "blocks.0", "blocks.1", …: a unit each, nothing at the root.
struct Chain : Module {
  std::vector<Linear> blocks;

  Chain(Tape& tape, int n, int64_t width, bool bias = true) {
    for (int i = 0; i < n; ++i) blocks.emplace_back(tape, LinearConfig{width, width, bias});
    name_parameters(*this);
  }
  void fields(ModuleVisitor& visit) override { visit("blocks", blocks); }
  /// Through the blocks in `order`.
  Variable forward(Variable x, const std::vector<int>& order) const {
    for (const int i : order) x = blocks[static_cast<size_t>(i)].forward(x, Activation::tanh);
    return x;
  }
  Variable forward(const Variable& x) const {
    std::vector<int> order;
    for (size_t i = 0; i < blocks.size(); ++i) order.push_back(static_cast<int>(i));
    return forward(x, order);
  }
};

}  // namespace sherd::test
