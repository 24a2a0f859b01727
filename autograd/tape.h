// Tape: nodes in the order they were made; backward walks them once from the end, so no graph is
// sorted. An op is a function that computes its output and calls record() with its backward
// beneath: nothing registers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograd/variable.h"

namespace sherd {

/// The gradient of one input: a tensor, nothing (empty), or a function that adds it to a total, for
/// gradients that touch few rows (embedding). The total has the shape of the input, f32 (f64 for
/// f64), zeros when it is the first.
struct Grad {
  Grad() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): backward functions return {dx, dw, db}.
  Grad(Tensor t) : dense(std::move(t)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Grad(std::function<void(const Tensor& total)> add) : add_to(std::move(add)) {}

  Tensor dense;
  std::function<void(const Tensor& total)> add_to;
};

/// Gradients in the order of the op's inputs; an input that does not require one may get an empty
/// Grad.
using Grads = std::vector<Grad>;

/// One per rank; not thread-safe. A Variable holds its Tape, so the Tape outlives its Variables'
/// use.
class Tape {
 public:
  explicit Tape(RuntimePtr runtime) : runtime_(std::move(runtime)) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape();

  const RuntimePtr& runtime() const { return runtime_; }

  // --- variables
  /// A parameter or an input that wants a gradient; `name` becomes the owner of its bytes.
  Variable leaf(Tensor value, std::string name = {});
  /// A value without gradient.
  Variable constant(Tensor value);

  // --- for ops
  using Backward = std::function<Grads(const Tensor& dy)>;
  using BackwardMany = std::function<Grads(const std::vector<Tensor>& dys)>;

  /// The output variable of an op. `backward` gets the gradient of `out` (contiguous or not, of its
  /// dtype) and returns one per input. It is dropped at once when nothing wants a gradient.
  Variable record(const char* op, Tensor out, std::vector<Variable> inputs, Backward backward);
  /// The same for several outputs; a gradient that nobody asked for comes as an empty Tensor.
  std::vector<Variable> record(const char* op, std::vector<Tensor> outs,
                               std::vector<Variable> inputs, BackwardMany backward);
  /// True when an op over these inputs would be recorded: else it need not save anything.
  bool recording(const std::vector<Variable>& inputs) const;

  // --- for training loops and sharding
  /// Calls `fire` when backward passes this point, whether or not gradients flow there.
  void mark(std::function<void()> fire);
  /// Adds d(loss)/d(leaf) · seed to the grad of each leaf, and empties the tape. `loss` has one
  /// element unless a seed of its shape is given. Throws usage if loss was not recorded, or its
  /// graph has been used already.
  void backward(const Variable& loss, Tensor seed = {});
  /// Forgets what was recorded.
  void clear();
  /// Makes record() and backward throw at the first value that is not finite, naming the op: slow,
  /// for diagnosis.
  void check_finite(bool on) { check_finite_ = on; }
  size_t recorded() const { return nodes_.size(); }
  /// Whether what runs is for training: outside NoGrad, or to be recomputed in backward.
  bool enabled() const { return enabled_ || counted_ != nullptr; }
  /// Whether backward is running; functions that it recomputes run then, too.
  bool in_backward() const { return in_backward_; }
  /// Calls `function` when the backward pass that runs has walked the whole tape.
  void after_backward(std::function<void()> function);
  /// How many ops ran, forward and backward: accesses with another count are another op's.
  uint64_t ops() const { return ops_; }
  /// How often the tape was emptied, by backward or clear().
  uint64_t times_emptied() const { return times_emptied_; }

 private:
  friend class NoGrad;
  friend class UseCounter;
  friend Variable recompute(const char*, std::vector<Variable>,
                            std::function<Variable(const std::vector<Variable>&)>);

  struct Node {
    const char* op = nullptr;
    std::string where;
    int64_t id = 0;
    /// In the order of the op's; nullptr for an empty Variable.
    std::vector<std::shared_ptr<VariableState>> inputs;
    std::vector<std::shared_ptr<VariableState>> outputs;
    BackwardMany backward;
    std::function<void()> fire;
  };

  Variable make(Tensor value, bool requires_grad, std::string name);
  void run_back_to(size_t stop);
  void step_back(Node& node);
  static void forget(const Node& node);
  void give(VariableState& input, Grad grad, const char* op);
  void release_use(VariableState& leaf);
  void require_finite(const Tensor& t, const char* what, const char* op) const;

  RuntimePtr runtime_;
  std::vector<Node> nodes_;
  int64_t next_id_ = 1;
  bool enabled_ = true;
  bool check_finite_ = false;
  bool in_backward_ = false;
  uint64_t ops_ = 0;
  uint64_t times_emptied_ = 0;
  std::vector<std::function<void()>> after_backward_;
  /// While a recomputed function runs forward: the leaves it used, once for each use.
  std::vector<Variable>* counted_ = nullptr;
};

/// Nothing is recorded on `tape` while this lives.
class NoGrad {
 public:
  explicit NoGrad(Tape& tape) : tape_(tape), before_(tape.enabled_) { tape.enabled_ = false; }
  ~NoGrad() { tape_.enabled_ = before_; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Tape& tape_;
  const bool before_;
};

}  // namespace sherd
