// Dims: V rows of the table, C columns, N indices.
#include "autograd/ops/embedding.h"

#include <cstring>

#include "autograd/ops/embedding_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

/// Columns that one thread adds: four vectors of f32, and a block depends on C alone.
constexpr int64_t kColumns = 64;

template <class Index>
void check_indices(const Index* indices, const Shape& shape, int64_t rows) {
  const int64_t count = shape.numel();
  for (int64_t n = 0; n < count; ++n) {
    if (indices[n] >= 0 && indices[n] < rows) continue;
    Shape position = shape;
    int64_t rest = n;
    for (int d = shape.size() - 1; d >= 0; --d) {
      position[d] = rest % shape[d];
      rest /= shape[d];
    }
    fail("an index is out of range: index", indices[n], "at position", position, "of a table of",
         rows, "rows");
  }
}

}  // namespace

Variable embedding(const Variable& table, const Tensor& indices) {
  const Context in("embedding");
  check(table.shape().size() == 2, "the table must be [V, C], got", describe(table.value()));
  check(indices.dtype() == DType::i32 || indices.dtype() == DType::i64,
        "indices must be i32 or i64, got", describe(indices));
  const Tensor rows = table.value().contiguous();
  const Tensor at = indices.contiguous();
  const int64_t columns = table.size(1);
  Shape shape = indices.shape();
  shape.push_back(columns);
  const Tensor y = Tensor::empty(table.runtime(), shape, table.dtype());
  const int64_t count = indices.numel();

  on_dtype<int32_t, int64_t>(at.dtype(), "embedding", [&](auto tag) {
    using Index = typename decltype(tag)::type;
    const Index* index = at.data<Index>();
    const auto* from = static_cast<const std::byte*>(rows.raw());
    auto* to = static_cast<std::byte*>(y.raw());
    if (table.value().device().is_meta()) return;
    check_indices(index, indices.shape(), table.size(0));
    const auto row_bytes = static_cast<size_t>(columns) * size_of(table.dtype());
    if (row_bytes == 0) return;  // no bytes to point at
    const int64_t block = block_of(columns);
    table.runtime()->pool().run((count + block - 1) / block, [&](int64_t b) {
      for (int64_t n = b * block; n < std::min(count, (b + 1) * block); ++n)
        std::memcpy(to + static_cast<size_t>(n) * row_bytes,
                    from + static_cast<size_t>(index[n]) * row_bytes, row_bytes);
    });
  });

  return table.tape().record(
      "embedding", y, {table}, [at = Saved(at), count, columns](const Tensor& any_dy) -> Grads {
        const auto add = [at, count, columns, dy = any_dy.contiguous()](const Tensor& total) {
          on_dtype<float, double, bf16, f16>(dy.dtype(), "embedding", [&](auto tag) {
            using T = typename decltype(tag)::type;
            on_dtype<int32_t, int64_t>(at.get().dtype(), "embedding", [&](auto index_tag) {
              using Index = typename decltype(index_tag)::type;
              launch(*total.runtime(),
                     kernels::EmbeddingBackward<T, Index>{at.get().template data<Index>(),
                                                          dy.data<T>(), total.data<Accumulate<T>>(),
                                                          count, columns},
                     columns, kColumns);
            });
          });
        };
        return {Grad(std::function<void(const Tensor&)>(add))};
      });
}

}  // namespace sherd
