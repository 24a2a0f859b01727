#include "tensor/kernels/reduce_kernels.h"
#include "tensor/kernels/vec_rows.h"

namespace sherd::kernels {

namespace {

struct Sum {
  template <class V>
  [[gnu::always_inline]] static V start() {
    return V{};
  }
  template <class V>
  [[gnu::always_inline]] static V join(V a, V b) {
    return a + b;
  }
};

struct Max {
  template <class V>
  [[gnu::always_inline]] static V start() {
    return V{} - __builtin_inff();
  }
  template <class V>
  [[gnu::always_inline]] static V join(V a, V b) {
    return keep_nan(b, select_less(a, b, b, a));
  }
};

/// n adjacent elements joined: four accumulators, so that additions overlap.
template <class F, class X, class Y>
[[gnu::always_inline]] inline Y line(const X* x, int64_t n) {
  using V = Vec<X>;
  constexpr int64_t kL = kLanes<X>;
  V a = F::template start<V>();
  V b = a;
  V c = a;
  V d = a;
  int64_t i = 0;
  for (; i + 4 * kL <= n; i += 4 * kL) {
    a = F::join(a, load(x + i));
    b = F::join(b, load(x + i + kL));
    c = F::join(c, load(x + i + 2 * kL));
    d = F::join(d, load(x + i + 3 * kL));
  }
  for (; i + kL <= n; i += kL) a = F::join(a, load(x + i));
  if (i < n) {
    const Y other = F::template start<V>()[0];
    b = F::join(b, first_lanes(load_n(x + i, n - i), n - i, other));
  }
  return fold(
      F::join(F::join(a, c), F::join(b, d)),
      [](auto x, auto y) __attribute__((always_inline)) { return F::join(x, y); });
}

/// Column sums of `rows` rows that are `stride` apart: `Groups` vectors at a time stay in
/// registers.
template <class F, int kGroups, class X, class Y>
[[gnu::always_inline]] inline void columns_of(const X* x, int64_t stride, int64_t rows, Y* y,
                                              int64_t count, Y scale) {
  using V = Vec<X>;
  V total[kGroups];
  for (int g = 0; g < kGroups; ++g) total[g] = F::template start<V>();
  for (int64_t r = 0; r < rows; ++r)
    for (int g = 0; g < kGroups; ++g)
      total[g] = F::join(total[g], kGroups == 1 ? load(x + r * stride, count)
                                                : load(x + r * stride + g * kLanes<X>));
  for (int g = 0; g < kGroups; ++g) {
    if (kGroups == 1)
      store(y, total[g] * scale, count);
    else
      store(y + g * kLanes<X>, total[g] * scale);
  }
}

template <class F, class X, class Y>
[[gnu::always_inline]] inline void item(const Reduce<X, Y>& k, int64_t index) {
  const int64_t column_blocks = (k.columns + kReduceColumns - 1) / kReduceColumns;
  const int64_t block = index % column_blocks;
  const int64_t outer = index / column_blocks;  // a · chunks + chunk
  const int64_t first = outer % k.chunks * k.chunk;
  const int64_t rows = k.rows - first < k.chunk ? k.rows - first : k.chunk;
  const Y scale = static_cast<Y>(k.scale);
  if (k.columns == 1) {
    k.y[outer] = line<F, X, Y>(k.x + outer / k.chunks * k.rows + first, rows) * scale;
    return;
  }
  const X* const x = k.x + (outer / k.chunks * k.rows + first) * k.columns;
  Y* const y = k.y + outer * k.columns;
  int64_t c = block * kReduceColumns;
  const int64_t end = c + kReduceColumns < k.columns ? c + kReduceColumns : k.columns;
  constexpr int64_t kL = kLanes<X>;
  for (; c + 4 * kL <= end; c += 4 * kL) columns_of<F, 4>(x + c, k.columns, rows, y + c, kL, scale);
  for (; c < end; c += kL)
    columns_of<F, 1>(x + c, k.columns, rows, y + c, end - c < kL ? end - c : kL, scale);
}

}  // namespace

template <class X, class Y>
template <Isa I>
void Reduce<X, Y>::run(int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; ++i) {
    if (f == Reduction::sum)
      item<Sum>(*this, i);
    else
      item<Max>(*this, i);
  }
}

template void Reduce<float, float>::run<kIsa>(int64_t, int64_t) const;
template void Reduce<double, double>::run<kIsa>(int64_t, int64_t) const;
template void Reduce<bf16, float>::run<kIsa>(int64_t, int64_t) const;
template void Reduce<f16, float>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
