// Dims: N rows, V classes.
#include "autograd/ops/cross_entropy.h"

#include <limits>

#include "autograd/ops/cross_entropy_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

template <class Index>
int64_t count_targets(const Index* targets, int64_t rows, int64_t classes, int64_t ignore_index) {
  int64_t tokens = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto target = static_cast<int64_t>(targets[row]);
    if (target == ignore_index) continue;
    check(target >= 0 && target < classes, "a target is out of range: target", target, "of row",
          row, "with", classes, "classes and ignore index", ignore_index);
    ++tokens;
  }
  return tokens;
}

}  // namespace

CheckedTargets check_targets(const Tensor& targets, int64_t rows, int64_t classes,
                             const CrossEntropyOptions& options) {
  const int64_t ignore_index = options.ignore_index;
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1,
        "label_smoothing must be in [0, 1]:", options.label_smoothing);
  check(targets.shape() == Shape{rows}, "targets must be [N]: got", describe(targets), "for", rows,
        "rows of logits");
  check(classes <= std::numeric_limits<int32_t>::max(),
        "more classes than an i32 can count:", classes);
  check(ignore_index >= std::numeric_limits<int32_t>::min() &&
            ignore_index <= std::numeric_limits<int32_t>::max(),
        "ignore_index must fit an i32:", ignore_index);
  CheckedTargets checked;
  on_dtype<int32_t, int64_t>(targets.dtype(), "targets", [&](auto tag) {
    using Index = typename decltype(tag)::type;
    const Tensor given = targets.contiguous();
    const Index* data = given.template data<Index>();
    checked.tokens = data == nullptr ? rows : count_targets(data, rows, classes, ignore_index);
    checked.indices = given.to(DType::i32);
  });
  return checked;
}

LossResult cross_entropy(const Variable& logits, const Tensor& targets,
                         const CrossEntropyOptions& options) {
  const Context in("cross_entropy");
  check(logits.shape().size() == 2, "logits must be [N, V], got", describe(logits.value()));
  const int64_t rows = logits.size(0);
  const int64_t columns = logits.size(1);
  const CheckedTargets checked = check_targets(targets, rows, columns, options);
  const auto ignored = static_cast<int32_t>(options.ignore_index);
  const double smoothing = options.label_smoothing;
  const Tensor indices = checked.indices;
  const Tensor x = logits.value().contiguous();
  const RuntimePtr& runtime = x.runtime();
  const DType sums = accumulate_dtype(x.dtype());

  const Tensor loss = Tensor::empty(runtime, {}, sums);
  const Tensor stats = Tensor::empty(runtime, {rows, 2}, sums);
  on_dtype<float, double, bf16, f16>(x.dtype(), "cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Accumulate<T>;
    const CategoryScope staging(*runtime, Category::staging);
    const Tensor row_loss = Tensor::empty(runtime, {rows}, DType::f64);
    launch(*runtime,
           kernels::CrossEntropyRows<T, T>{.logits = x.data<T>(),
                                           .targets = indices.data<int32_t>(),
                                           .ignore_index = ignored,
                                           .columns = columns,
                                           .scale = 1,
                                           .smoothing = static_cast<A>(smoothing),
                                           .row_loss = row_loss.data<double>(),
                                           .row_stats = stats.data<A>(),
                                           .dlogits = nullptr,
                                           .exps = nullptr},
           rows, block_of(columns));
    if (runtime->device().is_meta()) return;
    double total = 0;
    for (int64_t row = 0; row < rows; ++row) total += row_loss.data<double>()[row];
    *loss.data<A>() = static_cast<A>(total);
  });

  Variable out = logits.tape().record(
      "cross_entropy", loss, {logits},
      [x = Saved(x), indices = Saved(indices), stats, ignored,
       smoothing](const Tensor& dy) -> Grads {
        const Tensor dx = Tensor::empty_like(x.get());
        on_dtype<float, double, bf16, f16>(dx.dtype(), "cross_entropy", [&](auto tag) {
          using T = typename decltype(tag)::type;
          using A = Accumulate<T>;
          const A* scale = dy.data<A>();
          launch(*dx.runtime(),
                 kernels::CrossEntropyBackward<T>{.logits = x.get().template data<T>(),
                                                  .targets = indices.get().template data<int32_t>(),
                                                  .ignore_index = ignored,
                                                  .columns = dx.size(1),
                                                  .scale = scale == nullptr ? A{0} : *scale,
                                                  .smoothing = static_cast<A>(smoothing),
                                                  .row_stats = stats.data<A>(),
                                                  .dlogits = dx.data<T>()},
                 dx.size(0), block_of(dx.size(1)));
        });
        return {dx};
      });
  return {std::move(out), checked.tokens};
}

}  // namespace sherd
