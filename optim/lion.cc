#include "optim/lion.h"

#include "optim/lion_kernels.h"

namespace sherd {

Lion::Lion(const LionOptions& options) : options_(options) {
  check(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
        "Lion's betas are in [0, 1), got", options.beta1, "and", options.beta2);
}

void Lion::prepare(Slot& slot) const {
  add_zero_state(slot, "m");
  add_master(slot);
}

bool Lion::update(const Slot& slot, const StepInput& in, int64_t begin, int64_t end) const {
  bool not_finite = false;
  on_dtype<float, double, bf16, f16>(slot.value.dtype(), "lion", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = typename kernels::Lion<T>::R;
    const double lr = in.lr * slot.lr_scale;
    const Tensor master = slot.find_state("master");
    const kernels::Lion<T> kernel{
        .value = slot.value.data<T>(),
        .master = master ? master.data<R>() : nullptr,
        .grad = slot.grad.data<R>(),
        .m = slot.find_state("m").data<R>(),
        .grad_scale = static_cast<R>(in.grad_scale),
        .decay = static_cast<R>(1 - lr * slot.weight_decay),
        .beta1 = static_cast<R>(options_.beta1),
        .beta2 = static_cast<R>(options_.beta2),
        .lr = static_cast<R>(lr),
        .not_finite = &not_finite,
    };
    run_at(slot.value.runtime()->isa(), kernel, begin, end);
  });
  return !not_finite;
}

}  // namespace sherd
