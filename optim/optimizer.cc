#include "optim/optimizer.h"

#include <atomic>
#include <cmath>

#include "optim/pieces.h"

namespace sherd {

namespace {

void check_slot(const Slot& slot) {
  const Context in("slot ", slot.name);
  check(is_floating(slot.value.dtype()), "an optimizer updates floating values, not",
        slot.value.dtype());
  check(slot.grad.shape() == slot.value.shape(), "gradient", describe(slot.grad),
        "does not have the shape of the value", describe(slot.value));
  check(slot.grad.dtype() == accumulate_dtype(slot.value.dtype()), "the gradient of a",
        slot.value.dtype(), "value is", accumulate_dtype(slot.value.dtype()), "but this one is",
        slot.grad.dtype());
  check(slot.value.is_contiguous() && slot.grad.is_contiguous(),
        "value and gradient must be contiguous");
  for (const auto& state : slot.state)
    check(state.tensor.shape() == slot.value.shape() && state.tensor.is_contiguous() &&
              (state.tensor.dtype() == slot.grad.dtype() ||
               (state.tensor.dtype() == DType::bf16 && state.name != "master")),
          "state is not like the gradient:", state.name, describe(state.tensor), "and",
          describe(slot.grad));
}

}  // namespace

Tensor Slot::find_state(std::string_view state_name) const {
  for (const auto& s : state)
    if (s.name == state_name) return s.tensor;
  return {};
}

void add_zero_state(Slot& slot, std::string_view state_name, DType dtype) {
  if (slot.find_state(state_name)) return;
  Runtime& runtime = *slot.value.runtime();
  const CategoryScope scope(runtime, Category::optimizer);
  slot.state.push_back(
      {std::string(state_name), Tensor::zeros(slot.value.runtime(), slot.value.shape(), dtype)});
}

void add_master(Slot& slot) {
  if (slot.value.dtype() == accumulate_dtype(slot.value.dtype()) || slot.find_state("master"))
    return;
  Runtime& runtime = *slot.value.runtime();
  const CategoryScope scope(runtime, Category::optimizer);
  slot.state.push_back({"master", slot.value.to(DType::f32)});
}

void Optimizer::step(std::span<Slot> slots, double lr, double grad_scale) {
  if (!std::isfinite(lr) || !std::isfinite(grad_scale))
    fail_as(ErrorKind::numeric, "no step was made: learning rate", lr, "and gradient scale",
            grad_scale, "must be finite");
  std::vector<const Slot*> active;
  std::vector<int64_t> sizes;
  for (Slot& slot : slots) {
    if (!slot.grad) continue;
    prepare(slot);
    check_slot(slot);
    active.push_back(&slot);
    sizes.push_back(slot.value.numel());
  }
  ++steps_;
  if (active.empty()) return;

  const StepInput in{steps_, lr, grad_scale};
  std::vector<std::atomic<bool>> bad(active.size());
  for_pieces(*active[0]->value.runtime(), sizes, [&](size_t i, int64_t begin, int64_t end) {
    if (!update(*active[i], in, begin, end)) bad[i].store(true, std::memory_order_relaxed);
  });
  for (const Slot* slot : active) {
    slot->value.storage()->bump_version();
    for (const auto& state : slot->state) state.tensor.storage()->bump_version();
  }
  for (size_t i = 0; i < active.size(); ++i)
    if (bad[i].load(std::memory_order_relaxed))
      fail_as(ErrorKind::numeric,
              "the gradient is not finite, and the step was made with it:", active[i]->name);
}

}  // namespace sherd
