#include "optim/sgd.h"

#include "optim/sgd_kernels.h"

namespace sherd {

Sgd::Sgd(const SgdOptions& options) : options_(options) {
  check(options.momentum >= 0 && options.momentum < 1, "momentum is in [0, 1), got",
        options.momentum);
  check(!options.nesterov || options.momentum > 0, "Nesterov's way needs a momentum above 0");
}

void Sgd::prepare(Slot& slot) const {
  if (options_.momentum > 0) add_zero_state(slot, "momentum");
  add_master(slot);
}

bool Sgd::update(const Slot& slot, const StepInput& in, int64_t begin, int64_t end) const {
  bool not_finite = false;
  on_dtype<float, double, bf16, f16>(slot.value.dtype(), "sgd", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = typename kernels::Sgd<T>::R;
    const Tensor master = slot.find_state("master");
    const Tensor sum = slot.find_state("momentum");
    const kernels::Sgd<T> kernel{
        .value = slot.value.data<T>(),
        .master = master ? master.data<R>() : nullptr,
        .grad = slot.grad.data<R>(),
        .momentum_sum = options_.momentum > 0 ? sum.data<R>() : nullptr,
        .grad_scale = static_cast<R>(in.grad_scale),
        .weight_decay = static_cast<R>(slot.weight_decay),
        .momentum = static_cast<R>(options_.momentum),
        .lr = static_cast<R>(in.lr * slot.lr_scale),
        .nesterov = options_.nesterov,
        .not_finite = &not_finite,
    };
    run_at(slot.value.runtime()->isa(), kernel, begin, end);
  });
  return !not_finite;
}

}  // namespace sherd
