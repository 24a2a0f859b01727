// Slots with reproducible contents, for tests of optimizers.
#pragma once

#include <cmath>
#include <vector>

#include "optim/optimizer.h"

namespace sherd::test {

/// Values about 1 and gradients of either sign and many sizes; another `seed`, other numbers.
inline Slot slot_like(const RuntimePtr& rt, const Shape& shape, DType dtype, int seed) {
  const auto n = static_cast<size_t>(shape.numel());
  std::vector<double> value(n), grad(n);
  for (size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i) + 0.1 * seed;
    value[i] = std::sin(x * 1.7) + 0.01;
    grad[i] = std::sin(x * 2.3) * std::exp(5 * std::sin(x));
  }
  Slot slot;
  slot.name = detail::concat("slot.", seed);
  slot.value = Tensor::from<double>(rt, shape, value).to(dtype);
  slot.grad = Tensor::from<double>(rt, shape, grad).to(accumulate_dtype(dtype));
  slot.weight_decay = 0.1;
  return slot;
}

/// A deep copy on another runtime, state left out.
inline Slot copy_of(const Slot& slot, const RuntimePtr& rt) {
  Slot copy = slot;
  copy.state.clear();
  copy.value = Tensor::empty(rt, slot.value.shape(), slot.value.dtype());
  copy.value.copy_from(slot.value);
  copy.grad = Tensor::empty(rt, slot.grad.shape(), slot.grad.dtype());
  copy.grad.copy_from(slot.grad);
  return copy;
}

/// Rows [begin, end) of a slot, as a rank would hold them.
inline Slot cut(Slot slot, int64_t begin, int64_t end) {
  slot.value = slot.value.slice(0, begin, end).clone();
  slot.grad = slot.grad.slice(0, begin, end).clone();
  return slot;
}

}  // namespace sherd::test
