#include "autograd/ops/cross_entropy_kernels.h"
#include "tensor/kernels/vec_rows.h"

namespace sherd::kernels {

namespace {

/// d = (exp(x - max) · inverse_sum - onehot(target)) · scale; target < 0: zeros. x and d may be
/// one.
template <class T, class D>
[[gnu::always_inline]] inline void write_gradient(const T* x, D* d, int64_t n, int32_t target,
                                                  Accumulate<T> max, Accumulate<T> inverse_sum,
                                                  Accumulate<T> scale) {
  if (target < 0) {
    for_lanes<D>(n, [&](int64_t i, int64_t k) { store(d + i, Vec<D>{}, k); });
    return;
  }
  const Vec<T> m = splat(max);
  const Vec<T> factor = splat(inverse_sum * scale);
  const Vec<T> at_target = exp(load_n(x + target, 1) - m) * factor - splat(scale);
  for_lanes<T>(n, [&](int64_t i, int64_t k) { store(d + i, exp(load(x + i, k) - m) * factor, k); });
  store_n(d + target, at_target, 1);
}

}  // namespace

template <class T, class D>
template <Isa I>
void CrossEntropyRows<T, D>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = logits + row * columns;
    const bool ignored = targets[row] == ignore_index;
    const int32_t target = ignored ? -1 : targets[row];
    MaxAndSum<A> of_row = {0, 1};
    row_loss[row] = 0;
    if (!ignored) {
      of_row = max_and_sum(x, columns);
      const A x_target = load_n(x + target, 1)[0];
      row_loss[row] = static_cast<double>(of_row.max) - static_cast<double>(x_target) +
                      log(splat(static_cast<double>(of_row.sum)))[0];
    }
    const A inverse_sum = A{1} / of_row.sum;
    if (row_stats != nullptr) {
      row_stats[2 * row] = of_row.max;
      row_stats[2 * row + 1] = inverse_sum;
    }
    if (dlogits != nullptr)
      write_gradient(x, dlogits + row * columns, columns, target, of_row.max, inverse_sum, scale);
  }
}

template <class T>
template <Isa I>
void CrossEntropyBackward<T>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row)
    write_gradient(logits + row * columns, dlogits + row * columns, columns,
                   targets[row] == ignore_index ? -1 : targets[row], row_stats[2 * row],
                   row_stats[2 * row + 1], scale);
}

template void CrossEntropyRows<float, float>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyRows<float, bf16>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyRows<float, f16>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyRows<double, double>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyRows<bf16, bf16>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyRows<f16, f16>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyBackward<float>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyBackward<double>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyBackward<bf16>::run<kIsa>(int64_t, int64_t) const;
template void CrossEntropyBackward<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
