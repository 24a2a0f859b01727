#include "optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "optim/adamw_kernels.h"
#include "tensor/random.h"

namespace sherd {

AdamW::AdamW(const AdamWOptions& options) : options_(options) {
  check(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
        "AdamW's betas are in [0, 1), got", options.beta1, "and", options.beta2);
  check(options.moments == DType::f32 || options.moments == DType::bf16,
        "AdamW's moments are f32 or bf16, not", options.moments);
  check(options.eps >= 0, "AdamW's eps is ≥ 0, got", options.eps);
}

void AdamW::prepare(Slot& slot) const {
  const bool narrow = options_.moments == DType::bf16 && slot.value.dtype() != DType::f64;
  const DType dtype = narrow ? DType::bf16 : accumulate_dtype(slot.value.dtype());
  add_zero_state(slot, "m", dtype);
  add_zero_state(slot, "v", dtype);
  add_master(slot);
}

bool AdamW::update(const Slot& slot, const StepInput& in, int64_t begin, int64_t end) const {
  const double lr = in.lr * slot.lr_scale;
  const auto t = static_cast<double>(in.step);
  const Tensor m = slot.find_state("m"), v = slot.find_state("v"),
               master = slot.find_state("master");
  bool not_finite = false;
  const auto run = [&](auto value_tag, auto moment_tag) {
    using T = typename decltype(value_tag)::type;
    using M = typename decltype(moment_tag)::type;
    using R = typename kernels::AdamW<T, M>::R;
    kernels::AdamW<T, M> kernel{
        .value = slot.value.data<T>(),
        .master = master ? master.data<R>() : nullptr,
        .grad = slot.grad.data<R>(),
        .m = m.data<M>(),
        .v = v.data<M>(),
        .grad_scale = static_cast<R>(in.grad_scale),
        .decay = static_cast<R>(1 - lr * slot.weight_decay),
        .beta1 = static_cast<R>(options_.beta1),
        .beta2 = static_cast<R>(options_.beta2),
        .step_size = static_cast<R>(lr / (1 - std::pow(options_.beta1, t))),
        .correction = static_cast<R>(1 / std::sqrt(1 - std::pow(options_.beta2, t))),
        .eps = static_cast<R>(options_.eps),
        .not_finite = &not_finite,
    };
    if constexpr (sizeof(M) == 2) {
      const RandomKey key = RandomKey{options_.seed, 0}.derive("moments").derive(slot.name).derive(
          static_cast<uint64_t>(in.step));
      kernel.seed = key.seed;
      kernel.stream = key.stream;
      // One run of elements that are neighbours in the whole at a time.
      for (int64_t i = begin; i < end;) {
        const int64_t stop = std::min(end, i - i % slot.place.run + slot.place.run);
        kernel.shift = slot.place.of(i) - i;
        run_at(slot.value.runtime()->isa(), kernel, i, stop);
        i = stop;
      }
    } else {
      run_at(slot.value.runtime()->isa(), kernel, begin, end);
    }
  };
  on_dtype<float, double, bf16, f16>(slot.value.dtype(), "adamw", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>)
      if (m.dtype() == DType::bf16) return run(tag, std::type_identity<bf16>{});
    run(tag, std::type_identity<Accumulate<T>>{});
  });
  return !not_finite;
}

}  // namespace sherd
