#include "autograd/tape.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "tensor/kernels/accumulate.h"

namespace sherd {

namespace {

std::string joined_context() {
  std::string text;
  for (const auto& frame : detail::context_frames()) text += (text.empty() ? "" : ": ") + frame;
  return text;
}

}  // namespace

Tape::~Tape() { clear(); }

Variable Tape::make(Tensor value, bool requires_grad, std::string name) {
  auto state = std::make_shared<VariableState>();
  state->requires_grad = requires_grad;
  state->name = std::move(name);
  state->tape = this;
  return {std::move(value), std::move(state)};
}

Variable Tape::leaf(Tensor value, std::string name) {
  check(is_floating(value.dtype()), "only floating tensors have gradients, not", value.dtype());
  if (!name.empty()) value.storage()->set_owner(name);
  return make(std::move(value), true, std::move(name));
}

Variable Tape::constant(Tensor value) { return make(std::move(value), false, {}); }

bool Tape::recording(const std::vector<Variable>& inputs) const {
  if (!enabled_) return false;
  for (const auto& v : inputs)
    if (v && v.requires_grad()) return true;
  return false;
}

Variable Tape::record(const char* op, Tensor out, std::vector<Variable> inputs, Backward backward) {
  std::vector<Tensor> outs;
  outs.push_back(std::move(out));
  return record(op, std::move(outs), std::move(inputs),
                [backward = std::move(backward)](const std::vector<Tensor>& dys) {
                  return backward(dys[0]);
                })[0];
}

std::vector<Variable> Tape::record(const char* op, std::vector<Tensor> outs,
                                   std::vector<Variable> inputs, BackwardMany backward) {
  ++ops_;
  if (check_finite_)
    for (const auto& out : outs) require_finite(out, "the output", op);
  const bool wanted = recording(inputs);
  std::vector<Variable> variables;
  for (auto& out : outs) variables.push_back(make(std::move(out), wanted, {}));
  if (wanted || counted_ != nullptr) {
    for (const auto& v : inputs) {
      if (!v || !v.requires_grad() || v.state().node != 0) continue;
      ++v.state().pending_uses;
      if (counted_ != nullptr) counted_->push_back(v);
    }
  }
  if (!wanted) return variables;
  Node node;
  node.op = op;
  node.where = joined_context();
  node.id = next_id_++;
  for (const auto& v : inputs) node.inputs.push_back(v ? v.handle() : nullptr);
  for (const auto& v : variables) {
    v.state().node = node.id;
    node.outputs.push_back(v.handle());
  }
  node.backward = std::move(backward);
  nodes_.push_back(std::move(node));
  return variables;
}

void Tape::mark(std::function<void()> fire) {
  if (!enabled_) return;
  Node node;
  node.op = "mark";
  node.fire = std::move(fire);
  nodes_.push_back(std::move(node));
}

void Tape::backward(const Variable& loss, Tensor seed) {
  check(loss && loss.requires_grad(),
        "backward wants a variable that depends on one with a gradient");
  check(loss.state().node != 0, "backward wants the output of an op, not a leaf:", loss.name());
  bool found = false;
  for (auto node = nodes_.rbegin(); node != nodes_.rend() && !found; ++node)
    found = node->id == loss.state().node;
  check(found,
        "backward was called before on this graph, which it used up; run the forward pass again");
  if (!seed) {
    check(loss.value().numel() == 1, "backward wants a loss of one element or a seed; the loss is",
          loss.shape());
    seed = Tensor::full(runtime_, loss.shape(), 1, loss.dtype());
  }
  check(seed.shape() == loss.shape(),
        "the seed of backward has another shape than the loss:", seed.shape(), "and", loss.shape());
  loss.state().partial = std::move(seed);
  in_backward_ = true;
  try {
    run_back_to(0);
    for (const auto& function : std::exchange(after_backward_, {})) function();
  } catch (...) {
    in_backward_ = false;
    after_backward_.clear();
    clear();
    throw;
  }
  in_backward_ = false;
  ++times_emptied_;
}

void Tape::after_backward(std::function<void()> function) {
  check(in_backward_, "after_backward is for functions that run in backward");
  after_backward_.push_back(std::move(function));
}

void Tape::clear() {
  if (!nodes_.empty()) ++times_emptied_;
  while (!nodes_.empty()) {
    const Node node = std::move(nodes_.back());
    nodes_.pop_back();
    forget(node);
  }
}

void Tape::forget(const Node& node) {
  for (const auto& v : node.inputs) {
    if (!v) continue;
    v->partial = {};
    if (v->node == 0) v->pending_uses = 0;
  }
  for (const auto& out : node.outputs) out->partial = {};
}

void Tape::run_back_to(size_t stop) {
  while (nodes_.size() > stop) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    if (node.fire) {
      node.fire();
      continue;
    }
    try {
      step_back(node);
    } catch (...) {
      forget(node);  // clear() no longer finds it
      throw;
    }
  }
}

void Tape::step_back(Node& node) {
  std::vector<Tensor> dys;
  bool any = false;
  for (const auto& out : node.outputs) {
    dys.push_back(std::exchange(out->partial, {}));
    if (dys.back() && dys.back().dtype() != out->dtype) dys.back() = dys.back().to(out->dtype);
    any = any || dys.back();
  }
  if (any) {
    ++ops_;
    const Context where("backward of ", node.where.empty() ? node.op : node.where.c_str());
    Grads grads = node.backward(dys);
    dys.clear();
    node.backward = nullptr;  // frees what the op saved before the gradients are added
    check(grads.size() == node.inputs.size(),
          "an op's backward returned another number of gradients:", node.op, grads.size(), "for",
          node.inputs.size(), "inputs");
    for (size_t i = 0; i < grads.size(); ++i)
      if (node.inputs[i]) give(*node.inputs[i], std::move(grads[i]), node.op);
  }
  for (const auto& v : node.inputs)
    if (v && v->requires_grad && v->node == 0) release_use(*v);
}

void Tape::give(VariableState& input, Grad grad, const char* op) {
  if (!input.requires_grad) return;
  Tensor& partial = input.partial;
  const DType wide = accumulate_dtype(input.dtype);
  if (grad.add_to) {
    if (!partial)
      partial = Tensor::zeros(runtime_, input.shape, wide);
    else if (partial.dtype() != wide)
      partial = partial.to(wide);
    else if (!partial.owns_all_bytes())
      partial = partial.clone();
    grad.add_to(partial);
    return;
  }
  if (!grad.dense) return;
  check(grad.dense.shape() == input.shape,
        "an op's backward returned a gradient of another shape:", op, grad.dense.shape(), "for",
        input.shape);
  if (check_finite_) require_finite(grad.dense, "a gradient", op);
  if (!partial) {
    partial = std::move(grad.dense);
    return;
  }
  // Two ops may have returned the same tensor (add does): only a sum that nobody else holds is
  // written. A parameter's sum is formed in f32, and so is one of different dtypes.
  const bool parameter = input.node == 0 && !input.name.empty();
  if (partial.dtype() != wide && (parameter || grad.dense.dtype() != partial.dtype()))
    partial = partial.to(wide);
  else if (!partial.owns_all_bytes())
    partial = partial.clone();
  accumulate(partial, grad.dense.contiguous());
}

void Tape::release_use(VariableState& leaf) {
  if (--leaf.pending_uses > 0 || !leaf.partial) return;
  Tensor whole = std::exchange(leaf.partial, {});
  if (leaf.grad && !leaf.take_gradient) {
    // Passes may give a variable that is no parameter gradients of different dtypes.
    if (whole.dtype() != leaf.grad.dtype()) leaf.grad = leaf.grad.to(accumulate_dtype(leaf.dtype));
    accumulate(leaf.grad, whole.contiguous());
    return;
  }
  // A gradient that shares bytes with another tensor, or comes in another dtype, gets bytes of its
  // own.
  const DType dtype = leaf.name.empty() ? whole.dtype() : accumulate_dtype(leaf.dtype);
  if (whole.dtype() != dtype) whole = whole.to(dtype);
  if (!whole.owns_all_bytes()) whole = whole.clone();
  if (!leaf.name.empty()) whole.storage()->recategorize(Category::grads);
  if (leaf.take_gradient)
    leaf.take_gradient(std::move(whole));
  else
    leaf.grad = std::move(whole);
}

void Tape::require_finite(const Tensor& t, const char* what, const char* op) const {
  if (!is_floating(t.dtype()) || t.device().is_meta()) return;
  const auto values = t.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      fail_as(ErrorKind::numeric, "the first value that is not finite:", what, "of", op,
              describe(t), "at element", i, "is", values[i]);
}

}  // namespace sherd
