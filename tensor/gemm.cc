#include "tensor/gemm.h"

#include <algorithm>

#include "tensor/gemm_block.h"

namespace sherd {

namespace {

// Rows or columns of c in a block, at most: enough that packing the other operand again for each
// block costs little, few enough for all cores.
constexpr int64_t kBlockSize = 512;
constexpr int64_t kBlockFlops = int64_t{1} << 23;  // below this a block is not worth a thread
constexpr int64_t kFewBlocks = 4;                  // wanted of a product that is smaller than that

/// How c is cut along its longer dim: by shape alone, into an even number of equal blocks.
int64_t block_size(const Gemm& g) {
  const int64_t length = std::max(g.m, g.n);
  const int64_t worth = 2 * g.m * g.n * g.k / kBlockFlops;
  int64_t blocks = std::max((length + kBlockSize - 1) / kBlockSize, std::min(kFewBlocks, worth));
  if (blocks <= 1) return length;
  blocks += blocks % 2;
  return ((length + blocks - 1) / blocks + 15) / 16 * 16;
}

/// Item `item` of the batch, rows or columns [first, first + size) of it.
Gemm block_of(Gemm g, int64_t item, int64_t first, int64_t size) {
  const auto in = static_cast<int64_t>(size_of(g.in));
  const auto out = static_cast<int64_t>(size_of(g.out));
  const bool rows = g.m >= g.n;
  int64_t a = item * g.stride_a;
  int64_t b = item * g.stride_b;
  int64_t c = item * g.stride_c;
  if (rows) {
    a += g.transpose_a ? first : first * g.lda;
    c += first * g.ldc;
    g.m = size;
  } else {
    b += g.transpose_b ? first * g.ldb : first;
    c += first;
    if (g.bias != nullptr) g.bias = static_cast<const std::byte*>(g.bias) + first * in;
    g.n = size;
  }
  g.a = static_cast<const std::byte*>(g.a) + a * in;
  g.b = static_cast<const std::byte*>(g.b) + b * in;
  g.c = static_cast<std::byte*>(g.c) + c * out;
  g.batch = 1;
  return g;
}

}  // namespace

void gemm(Runtime& runtime, const Gemm& g) {
  check(is_floating(g.in) && (g.out == g.in || (size_of(g.in) == 2 && g.out == DType::f32)),
        "gemm does not compute", g.out, "from", g.in);
  check(g.bias == nullptr || !g.accumulate, "gemm adds either a bias or to c");
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  const bool halves = size_of(g.in) == 2;
  if (runtime.device().is_meta() && !halves) return;
  const CategoryScope staging(runtime, Category::staging);
  const int64_t length = std::max(g.m, g.n);
  const int64_t size = block_size(g);
  const int64_t per_item = (length + size - 1) / size;
  runtime.pool().run(per_item * g.batch, [&](int64_t i) {
    const int64_t first = i % per_item * size;
    const Gemm block = block_of(g, i / per_item, first, std::min(size, length - first));
    if (halves)
      detail::gemm_halves(runtime, block);
    else if (g.in == DType::f32)
      detail::gemm_onednn(block);
    else
      detail::gemm_eigen(block);
  });
}

}  // namespace sherd
