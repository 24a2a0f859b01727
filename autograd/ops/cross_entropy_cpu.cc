#include "autograd/ops/cross_entropy_kernels.h"
#include "tensor/kernels/vec_rows.h"

namespace sherd::kernels {

namespace {

template <class D>
[[gnu::always_inline]] inline void zero(D* d, int64_t n) {
  for_lanes<D>(n, [&](int64_t i, int64_t k) { store(d + i, Vec<D>{}, k); });
}

/// The distribution that a row is held to, times the gradient's scale.
template <class A>
struct Wanted {
  A target, others;
  Wanted(A scale, A smoothing, int64_t columns)
      : others(scale * smoothing / static_cast<A>(columns)) {
    target = scale * (1 - smoothing) + others;
  }
};

/// d = exp(x - max) · inverse_sum · scale - wanted; x and d may be one.
template <class T, class D>
[[gnu::always_inline]] inline void write_gradient(const T* x, D* d, int64_t n, int32_t target,
                                                  Accumulate<T> max, Accumulate<T> inverse_sum,
                                                  Accumulate<T> scale,
                                                  const Wanted<Accumulate<T>>& wanted) {
  const Vec<T> m = splat(max);
  const Vec<T> factor = splat(inverse_sum * scale);
  const Vec<T> others = splat(wanted.others);
  const Vec<T> at_target = exp(load_n(x + target, 1) - m) * factor - splat(wanted.target);
  for_lanes<T>(
      n, [&](int64_t i, int64_t k) { store(d + i, exp(load(x + i, k) - m) * factor - others, k); });
  store_n(d + target, at_target, 1);
}

/// A row in blocks, each with exponentials of its own: those of block b are exp(x - shift[b]).
template <class A>
struct Blocks {
  static constexpr int kMost = 256;
  int64_t size;  ///< by the row's length alone
  A shift[kMost];
  explicit Blocks(int64_t columns) : size(1024 * ((columns + 1024 * kMost - 1) / (1024 * kMost))) {}
};

/// max_and_sum, leaving the exponentials in `exps`.
template <class A>
[[gnu::always_inline]] inline MaxAndSum<A> keep_exps(const A* x, A* exps, int64_t n,
                                                     Blocks<A>& blocks) {
  A m = kLowest<A>;
  double s = 0;
  for (int64_t b = 0; b * blocks.size < n; ++b) {
    const int64_t begin = b * blocks.size;
    const int64_t count = n - begin < blocks.size ? n - begin : blocks.size;
    const A block_max = max_of(x + begin, count);
    if (block_max > m) {
      s *= static_cast<double>(exp(splat(m - block_max))[0]);
      m = block_max;
    }
    blocks.shift[b] = m;
    const Vec<A> shift = splat(m == kLowest<A> ? A{0} : m);  // masked so far: all are 0
    s += static_cast<double>(sum_of<A>(count, [&](int64_t i, int64_t k) {
      const Vec<A> e = exp(load(x + begin + i, k) - shift);
      store(exps + begin + i, e, k);
      return e;
    }));
  }
  return {m, static_cast<A>(s)};
}

/// write_gradient from what keep_exps left; `at_target` is the target's exp(x - max).
template <class A, class D>
[[gnu::always_inline]] inline void scale_exps(const A* exps, D* d, int64_t n, int32_t target,
                                              A at_target, const MaxAndSum<A>& of_row, A scale,
                                              const Wanted<A>& wanted, const Blocks<A>& blocks) {
  const A factor = scale / of_row.sum;
  const Vec<A> others = splat(wanted.others);
  for (int64_t b = 0; b * blocks.size < n; ++b) {
    const int64_t begin = b * blocks.size;
    const int64_t count = n - begin < blocks.size ? n - begin : blocks.size;
    const Vec<A> f = exp(splat(blocks.shift[b] - of_row.max)) * factor;
    for_lanes<A>(count, [&](int64_t i, int64_t k) {
      store(d + begin + i, load(exps + begin + i, k) * f - others, k);
    });
  }
  store_n(d + target, splat(at_target * factor - wanted.target), 1);
}

/// The row's loss and gradient, the exponentials kept or not.
template <class T, class D>
[[gnu::always_inline]] inline MaxAndSum<Accumulate<T>> loss_and_gradient(const T* x, T* exps, D* d,
                                                                         int64_t n, int32_t target,
                                                                         Accumulate<T> scale,
                                                                         Accumulate<T> smoothing) {
  using A = Accumulate<T>;
  const Wanted<A> wanted(scale, smoothing, n);
  if constexpr (std::is_same_v<T, A>) {
    if (exps != nullptr && d != nullptr) {
      const A x_target = x[target];  // before exps, which may be x, is written
      Blocks<A> blocks(n);
      const MaxAndSum<A> of_row = keep_exps(x, exps, n, blocks);
      const A at_target = exp(splat(x_target - of_row.max))[0];
      scale_exps(exps, d, n, target, at_target, of_row, scale, wanted, blocks);
      return of_row;
    }
  }
  const MaxAndSum<A> of_row = max_and_sum(x, n);
  if (d != nullptr) write_gradient(x, d, n, target, of_row.max, A{1} / of_row.sum, scale, wanted);
  return of_row;
}

}  // namespace

template <class T, class D>
template <Isa I>
void CrossEntropyRows<T, D>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * columns;
    D* d = dlogits == nullptr ? nullptr : dlogits + at;
    row_loss[row] = 0;
    if (targets[row] == ignore_index) {
      if (d != nullptr) zero(d, columns);
      continue;
    }
    const T x_target = logits[at + targets[row]];  // may be overwritten, as the row may
    double held = static_cast<double>(load_n(&x_target, 1)[0]);
    if (smoothing != 0) {
      const auto mean =
          static_cast<double>(
              sum_of<T>(columns, [&](int64_t i, int64_t k) { return load(logits + at + i, k); })) /
          static_cast<double>(columns);
      held += static_cast<double>(smoothing) * (mean - held);
    }
    const MaxAndSum<A> of_row =
        loss_and_gradient(logits + at, exps == nullptr ? nullptr : exps + at, d, columns,
                          targets[row], scale, smoothing);
    row_loss[row] =
        static_cast<double>(of_row.max) - held + log(splat(static_cast<double>(of_row.sum)))[0];
    if (row_stats != nullptr) {
      row_stats[2 * row] = of_row.max;
      row_stats[2 * row + 1] = A{1} / of_row.sum;
    }
  }
}

template <class T>
template <Isa I>
void CrossEntropyBackward<T>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * columns;
    if (targets[row] == ignore_index)
      zero(dlogits + at, columns);
    else
      write_gradient(logits + at, dlogits + at, columns, targets[row], row_stats[2 * row],
                     row_stats[2 * row + 1], scale, Wanted<A>(scale, smoothing, columns));
  }
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
