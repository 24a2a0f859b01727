#include "tensor/kernels/reduce.h"

#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

using kernels::kReduceColumns;
using kernels::Reduction;

/// x as [A, R, C], contiguous → [A, C].
Tensor reduce_middle(const Tensor& x, int64_t outer, int64_t rows, int64_t columns, double scale,
                     Reduction f) {
  // 64 lanes add a line, one lane a column.
  const int64_t chunk = columns == 1 ? 16384 : 1024;
  const int64_t chunks = std::max<int64_t>(1, (rows + chunk - 1) / chunk);
  Tensor y = Tensor::empty(x.runtime(), {outer, chunks, columns}, accumulate_dtype(x.dtype()));
  on_dtype<float, double, bf16, f16>(x.dtype(), "a reduction", [&](auto tag) {
    using X = typename decltype(tag)::type;
    using Y = Accumulate<X>;
    const int64_t blocks = (columns + kReduceColumns - 1) / kReduceColumns;
    launch(*x.runtime(),
           kernels::Reduce<X, Y>{x.data<X>(), y.data<Y>(), rows, columns, chunk, chunks,
                                 chunks == 1 ? scale : 1, f},
           outer * chunks * blocks,
           block_of(std::min(rows, chunk) * std::min(columns, kReduceColumns)));
  });
  return chunks == 1 ? y : reduce_middle(y, outer, chunks, columns, scale, f);
}

Tensor reduce(const Tensor& x, const Shape& kept, double scale, Reduction f) {
  check(kept.size() == x.dims(), "a reduction wants the kept shape with each dim of", x.shape(),
        "got", kept);
  // From the last dim to the first, adjacent reduced dims as one: [A, R, C] becomes [A, C].
  Tensor y = x.contiguous();
  int64_t columns = 1;
  bool scaled = false;
  for (int d = x.dims() - 1; d >= 0;) {
    if (kept[d] == x.shape()[d]) {
      columns *= x.shape()[d--];
      continue;
    }
    int64_t rows = 1;
    for (; d >= 0 && kept[d] != x.shape()[d]; --d) {
      check(kept[d] == 1, "a reduction keeps a dim or makes it 1:", x.shape(), "to", kept);
      rows *= x.shape()[d];
    }
    const int64_t outer = x.shape().rows(d + 1);
    y = reduce_middle(y, outer, rows, columns, scaled ? 1 : scale, f);
    scaled = true;
  }
  if (!scaled) {
    if (y.dtype() != accumulate_dtype(x.dtype())) y = y.to(accumulate_dtype(x.dtype()));
    if (scale != 1 || y.storage() == x.storage())  // a dim of 1 is reduced by copying
      y = reduce_middle(y, y.numel(), 1, 1, scale, f);
  }
  return y.view(kept);
}

}  // namespace

Shape kept_shape(const Shape& x, std::span<const int> dims) {
  Shape kept = x;
  if (dims.empty())
    for (int d = 0; d < x.size(); ++d) kept[d] = 1;
  unsigned seen = 0;
  for (const int dim : dims) {
    const int d = x.resolve(dim);
    check((seen & (1u << d)) == 0, "a dim is reduced twice:", d, "of", x);
    seen |= 1u << d;
    kept[d] = 1;
  }
  return kept;
}

Tensor reduce_sum(const Tensor& x, const Shape& kept, double scale) {
  return reduce(x, kept, scale, Reduction::sum);
}

Tensor reduce_max(const Tensor& x, const Shape& kept) {
  check(x.numel() > 0 || kept.numel() == 0, "the largest of no elements is asked for:", x.shape());
  return reduce(x, kept, 1, Reduction::max);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  check(broadcast(x.shape(), shape) == x.shape(), "cannot sum", x.shape(), "to", shape);
  Shape kept;
  for (int d = 0; d < x.dims(); ++d) {
    const int e = d - (x.dims() - shape.size());
    kept.push_back(e < 0 ? 1 : shape[e]);
  }
  return reduce_sum(x, kept).view(shape);
}

}  // namespace sherd
