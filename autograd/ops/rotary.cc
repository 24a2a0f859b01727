// B batch, T positions, H heads, D head dim
#include "autograd/ops/rotary.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "autograd/ops/rotary_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

/// ω, stretched.
double scaled(double frequency, const Llama3Scaling& s) {
  const double turns = static_cast<double>(s.original_context) * frequency / (2 * std::numbers::pi);
  if (turns > s.high_freq_factor) return frequency;
  if (turns < s.low_freq_factor) return frequency / s.factor;
  const double kept = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - kept) * frequency / s.factor + kept * frequency;
}

Tensor turned(const Tensor& x, const Tensor& table, int64_t heads, int turn) {
  const Tensor a = x.contiguous();
  Tensor y = Tensor::empty_like(a);
  const int64_t T = a.size(1), H = a.size(2), D = a.size(3);
  on_dtype<float, double, bf16, f16>(a.dtype(), "rotary", [&](auto tag) {
    using E = typename decltype(tag)::type;
    using A = Accumulate<E>;
    launch(*a.runtime(),
           kernels::Rotary<E>{a.data<E>(), table.data<A>(), y.data<E>(), T, H, heads, D,
                              static_cast<A>(turn)},
           a.size(0) * T, block_of(H * D));
  });
  return y;
}

}  // namespace

Tensor rotary_table(const RuntimePtr& runtime, int64_t positions, int64_t head_dim,
                    const RotaryOptions& options, DType dtype) {
  const Context in("rotary_table");
  check(head_dim > 0 && head_dim % 2 == 0,
        "the head dim must be even, for pairs of channels:", head_dim);
  check(options.theta > 0, "theta must be positive:", options.theta);
  if (options.scaling) {
    const Llama3Scaling& s = *options.scaling;
    check(s.factor >= 1, "the factor of the scaling must be at least 1:", s.factor);
    check(s.low_freq_factor > 0 && s.low_freq_factor < s.high_freq_factor,
          "low_freq_factor must be positive and below high_freq_factor:", s.low_freq_factor, "and",
          s.high_freq_factor);
    check(s.original_context > 0, "original_context must be positive:", s.original_context);
  }
  const int64_t half = head_dim / 2;
  std::vector<double> values(static_cast<size_t>(positions * head_dim));
  for (int64_t i = 0; i < half; ++i) {
    double frequency =
        std::pow(options.theta, -static_cast<double>(2 * i) / static_cast<double>(head_dim));
    if (options.scaling) frequency = scaled(frequency, *options.scaling);
    for (int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      values[static_cast<size_t>(p * head_dim + i)] = std::cos(angle);
      values[static_cast<size_t>(p * head_dim + half + i)] = std::sin(angle);
    }
  }
  return Tensor::from<double>(runtime, {positions, head_dim}, values).to(dtype);
}

Variable rotary(const Variable& x, const Tensor& table, int64_t heads) {
  const Context in("rotary");
  check(x.shape().size() == 4 && x.size(3) % 2 == 0,
        "wants x [batch, positions, heads, an even head dim], not", x.shape());
  check(heads >= 0 && heads <= x.size(2), "cannot turn", heads, "heads of x", x.shape());
  check(table.shape() == Shape{x.size(1), x.size(3)} &&
            table.dtype() == accumulate_dtype(x.dtype()) && table.is_contiguous(),
        "wants a table [positions, head dim] of the dtype of sums, not", describe(table), "for x",
        describe(x.value()));
  return x.tape().record("rotary", turned(x.value(), table, heads, 1), {x},
                         [table = Saved(table), heads](const Tensor& dy) -> Grads {
                           return {turned(dy, table.get(), heads, -1)};
                         });
}

}  // namespace sherd
