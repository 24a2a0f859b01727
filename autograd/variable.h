// Variable: a tensor that may want a gradient. A handle: copies share value and gradient.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tensor/tensor.h"

namespace sherd {

class Tape;

/// The gradient's side of a variable; only Tape changes the fields below `tape`. A recorded node
/// holds this and not the value, which is gone when nobody else wants it: neither a Variable nor a
/// backward that saved it.
struct VariableState {
  /// Of a leaf: the sum over finished backward passes, f32 (f64 for f64). Empty: no gradient yet.
  Tensor grad;
  /// Of the value.
  Shape shape;
  DType dtype = DType::f32;
  bool requires_grad = false;
  /// "blocks.3.mlp.up.weight" for parameters; empty for what ops make.
  std::string name;
  Tape* tape = nullptr;
  /// The gradient being formed by the backward pass in progress.
  Tensor partial;
  /// Of a leaf: recorded uses that backward has not passed yet. At 0 `partial` is whole and joins
  /// `grad`.
  int64_t pending_uses = 0;
  /// Of a parameter: gets the whole gradient of each backward pass, in bytes of its own, instead of
  /// `grad`. Where sharding attaches.
  std::function<void(Tensor whole)> take_gradient;
  /// The node that made it; 0: a leaf.
  int64_t node = 0;
};

class Variable {
 public:
  Variable() = default;
  /// For Tape: a variable with that value; `state` has its shape and dtype from it.
  Variable(Tensor value, std::shared_ptr<VariableState> state)
      : shared_(std::make_shared<Shared>(Shared{{}, std::move(state)})) {
    set_value(std::move(value));
  }

  explicit operator bool() const { return shared_ != nullptr; }
  const Tensor& value() const { return shared_->value; }
  void set_value(Tensor value) const {
    state().shape = value.shape();
    state().dtype = value.dtype();
    shared_->value = std::move(value);
  }
  const Tensor& grad() const { return state().grad; }
  void set_grad(Tensor grad) const { state().grad = std::move(grad); }
  bool requires_grad() const { return state().requires_grad; }
  const std::string& name() const { return state().name; }
  Tape& tape() const { return *state().tape; }

  const Shape& shape() const { return value().shape(); }
  int64_t size(int dim) const { return value().size(dim); }
  DType dtype() const { return value().dtype(); }
  const RuntimePtr& runtime() const { return value().runtime(); }

  VariableState& state() const { return *shared_->state; }
  const std::shared_ptr<VariableState>& handle() const { return shared_->state; }
  /// The same variable, not an equal one: how tied parameters are found.
  friend bool operator==(const Variable& a, const Variable& b) { return a.shared_ == b.shared_; }

 private:
  struct Shared {
    Tensor value;
    std::shared_ptr<VariableState> state;
  };
  std::shared_ptr<Shared> shared_;
};

/// What an op keeps of a tensor for its backward: a handle, so released bytes may return before
/// use, and the version it had. get() throws usage if the tensor was written in place meanwhile.
class Saved {
 public:
  explicit Saved(const Tensor& t) : tensor_(t), version_(t ? t.storage()->version() : 0) {}
  explicit Saved(const Variable& v) : Saved(v.value()) {}
  const Tensor& get() const {
    if (tensor_ && tensor_.storage()->version() != version_)
      fail("a tensor that backward needs was changed in place after the forward pass:",
           tensor_.storage()->owner().empty() ? describe(tensor_) : tensor_.storage()->owner());
    return tensor_;
  }

 private:
  Tensor tensor_;
  uint64_t version_;
};

}  // namespace sherd
