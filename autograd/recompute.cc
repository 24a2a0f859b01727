#include "autograd/recompute.h"

#include <utility>

namespace sherd {

/// Counts the leaves that ops use while nothing is recorded.
class UseCounter {
 public:
  UseCounter(Tape& tape, std::vector<std::shared_ptr<VariableState>>& used)
      : tape_(tape), before_(std::exchange(tape.counted_, &used)) {}
  ~UseCounter() { tape_.counted_ = before_; }
  UseCounter(const UseCounter&) = delete;
  UseCounter& operator=(const UseCounter&) = delete;

 private:
  Tape& tape_;
  std::vector<std::shared_ptr<VariableState>>* before_;
};

Variable recompute(const char* name, std::vector<Variable> inputs,
                   std::function<Variable(const std::vector<Variable>&)> function) {
  check(!inputs.empty(), "recompute wants at least one input:", name);
  Tape& tape = inputs[0].tape();
  if (!tape.enabled_) return function(inputs);

  std::vector<std::shared_ptr<VariableState>> used;
  Tensor out;
  {
    std::vector<Variable> detached;
    for (const auto& v : inputs) detached.push_back(tape.constant(v.value()));
    const NoGrad no_grad(tape);
    const UseCounter counter(tape, used);
    out = function(detached).value();
  }
  std::vector<Saved> saved;
  for (const auto& v : inputs) saved.emplace_back(v);

  // The parameters used inside are inputs of the node too, so that it is recorded for their sake,
  // and so that their pending uses, counted above, are passed when backward has passed the node.
  std::vector<Variable> node_inputs = inputs;
  for (const auto& leaf : used) {
    --leaf->pending_uses;  // record() counts it again
    node_inputs.emplace_back(leaf);
  }
  const size_t leaves = used.size();
  std::vector<bool> wanted;
  for (const auto& v : inputs) wanted.push_back(v.requires_grad());

  return tape.record(
      name, std::move(out), std::move(node_inputs),
      [&tape, saved = std::move(saved), wanted = std::move(wanted), leaves,
       function = std::move(function)](const Tensor& dy) {
        std::vector<Variable> again;
        for (size_t i = 0; i < saved.size(); ++i)
          again.push_back(wanted[i] ? tape.leaf(saved[i].get()) : tape.constant(saved[i].get()));
        const size_t start = tape.nodes_.size();
        const Variable y = function(again);
        if (y.requires_grad()) {
          y.state().partial = dy;
          tape.run_back_to(start);
        }
        Grads grads;
        for (const auto& v : again) grads.emplace_back(v.grad());
        grads.resize(again.size() + leaves);
        return grads;
      });
}

}  // namespace sherd
