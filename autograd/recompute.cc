#include "autograd/recompute.h"

#include <utility>

namespace sherd {

/// Counts the leaves that ops use while nothing is recorded; in `used`, once for each use. When it
/// ends, the uses are no longer pending: whoever records them counts them again.
class UseCounter {
 public:
  UseCounter(Tape& tape, std::vector<Variable>& used)
      : tape_(tape), used_(used), before_(std::exchange(tape.counted_, &used)) {}
  ~UseCounter() {
    tape_.counted_ = before_;
    for (const auto& leaf : used_) --leaf.state().pending_uses;
  }
  UseCounter(const UseCounter&) = delete;
  UseCounter& operator=(const UseCounter&) = delete;

 private:
  Tape& tape_;
  const std::vector<Variable>& used_;
  std::vector<Variable>* before_;
};

Variable recompute(const char* name, std::vector<Variable> inputs,
                   std::function<Variable(const std::vector<Variable>&)> function) {
  check(!inputs.empty(), "recompute wants at least one input:", name);
  Tape& tape = inputs[0].tape();
  if (!tape.enabled_) return function(inputs);

  std::vector<Variable> used;
  Tensor out;
  {
    std::vector<Variable> detached;
    for (const auto& v : inputs) detached.push_back(tape.constant(v.value()));
    const NoGrad no_grad(tape);
    const UseCounter counter(tape, used);
    const Variable result = function(detached);
    check(!result.requires_grad(),
          "a recomputed function must compute its result or return one of its inputs:", name);
    out = result.value();
  }
  std::vector<Saved> saved;
  for (const auto& v : inputs) saved.emplace_back(v);

  // The parameters used inside are inputs of the node too, so that it is recorded for their sake,
  // and so that their uses are pending until backward has passed the node.
  std::vector<Variable> node_inputs = inputs;
  node_inputs.insert(node_inputs.end(), used.begin(), used.end());
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
        // Where the function returned an input as it is, dy is still there.
        for (const auto& v : again) grads.emplace_back(v == y ? dy : v.grad());
        grads.resize(again.size() + leaves);
        return grads;
      });
}

}  // namespace sherd
