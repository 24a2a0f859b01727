#include "optim/adamw.h"

#include <cmath>

#include "optim/adamw_kernels.h"

namespace sherd {

AdamW::AdamW(const AdamWOptions& options) : options_(options) {
  check(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
        "AdamW's betas are in [0, 1), got", options.beta1, "and", options.beta2);
  check(options.eps >= 0, "AdamW's eps is ≥ 0, got", options.eps);
}

void AdamW::prepare(Slot& slot) const {
  add_zero_state(slot, "m");
  add_zero_state(slot, "v");
  add_master(slot);
}

bool AdamW::update(const Slot& slot, const StepInput& in, int64_t begin, int64_t end) const {
  bool not_finite = false;
  on_dtype<float, double, bf16, f16>(slot.value.dtype(), "adamw", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = typename kernels::AdamW<T>::R;
    const double lr = in.lr * slot.lr_scale;
    const auto t = static_cast<double>(in.step);
    const Tensor master = slot.find_state("master");
    const kernels::AdamW<T> kernel{
        .value = slot.value.data<T>(),
        .master = master ? master.data<R>() : nullptr,
        .grad = slot.grad.data<R>(),
        .m = slot.find_state("m").data<R>(),
        .v = slot.find_state("v").data<R>(),
        .grad_scale = static_cast<R>(in.grad_scale),
        .decay = static_cast<R>(1 - lr * slot.weight_decay),
        .beta1 = static_cast<R>(options_.beta1),
        .beta2 = static_cast<R>(options_.beta2),
        .step_size = static_cast<R>(lr / (1 - std::pow(options_.beta1, t))),
        .correction = static_cast<R>(1 / std::sqrt(1 - std::pow(options_.beta2, t))),
        .eps = static_cast<R>(options_.eps),
        .not_finite = &not_finite,
    };
    run_at(slot.value.runtime()->isa(), kernel, begin, end);
  });
  return !not_finite;
}

}  // namespace sherd
