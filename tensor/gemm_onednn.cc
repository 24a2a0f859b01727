#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "tensor/gemm_block.h"

namespace sherd::detail {

namespace {

/// oneDNN's own threads would fight the runtime's: in this scope the calling thread has none.
class OneOmpThread {
 public:
  OneOmpThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneOmpThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneOmpThread(const OneOmpThread&) = delete;
  OneOmpThread& operator=(const OneOmpThread&) = delete;

 private:
  const int before_;
};

// Rows of op(b), and rows of c, that one copied piece of a transposed a serves: 130 KiB of stack.
constexpr int64_t kPieceDepth = 224;
constexpr int64_t kPieceRows = 128;
constexpr int64_t kPieceStride = kPieceRows + 16;  // never a power of two: see gemm_transposed_a
constexpr int64_t kShortRow = 256;

void sgemm(const Gemm& g, float beta) {
  const dnnl_status_t status =
      dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, 1.0f,
                 static_cast<const float*>(g.a), g.lda, static_cast<const float*>(g.b), g.ldb, beta,
                 static_cast<float*>(g.c), g.ldc);
  if (status != dnnl_success)
    fail_as(ErrorKind::device, "oneDNN refused a matrix product of m, n, k", g.m, g.n, g.k,
            "status", status);
}

/// oneDNN packs a transposed a four columns at a time. With a long row, above all one of 2 KiB or
/// 6 KiB, each visit then finds its cache line evicted: 65 GFLOP/s instead of 86 (Zen 3).
/// Pieces of short rows stay in the cache.
void gemm_transposed_a(const Gemm& g, float beta) {
  float piece[kPieceDepth * kPieceStride];
  for (int64_t row = 0; row < g.m; row += kPieceRows) {
    for (int64_t depth = 0; depth < g.k; depth += kPieceDepth) {
      Gemm part = g;
      part.m = std::min(kPieceRows, g.m - row);
      part.k = std::min(kPieceDepth, g.k - depth);
      const auto* a = static_cast<const float*>(g.a) + depth * g.lda + row;
      for (int64_t d = 0; d < part.k; ++d)
        std::copy_n(a + d * g.lda, part.m, piece + d * kPieceStride);
      part.a = piece;
      part.lda = kPieceStride;
      part.b = static_cast<const float*>(g.b) + (g.transpose_b ? depth : depth * g.ldb);
      part.c = static_cast<float*>(g.c) + row * g.ldc;
      sgemm(part, depth == 0 ? beta : 1.0f);
    }
  }
}

dnnl_cpu_isa_t onednn_isa(Isa isa) {
  switch (isa) {
    case Isa::base:
      return dnnl_cpu_isa_sse41;
    case Isa::avx2:
      return dnnl_cpu_isa_avx2;
    case Isa::avx512:
      return dnnl_cpu_isa_avx512_core;
    case Isa::avx512bf16:
      return dnnl_cpu_isa_avx512_core_bf16;
  }
  return dnnl_cpu_isa_all;
}

}  // namespace

void gemm_onednn(const Gemm& g) {
  if (g.k == 0) return gemm_eigen(g);  // oneDNN refuses it
  const OneOmpThread one_thread;
  float beta = g.accumulate ? 1.0f : 0.0f;
  if (g.bias != nullptr) {
    const auto* bias = static_cast<const float*>(g.bias);
    for (int64_t i = 0; i < g.m; ++i) std::copy_n(bias, g.n, static_cast<float*>(g.c) + i * g.ldc);
    beta = 1.0f;
  }
  if (g.transpose_a && g.lda > kShortRow)
    gemm_transposed_a(g, beta);
  else
    sgemm(g, beta);
}

}  // namespace sherd::detail

namespace sherd {

bool limit_gemm_isa(Isa most) {
  const dnnl_cpu_isa_t isa = detail::onednn_isa(most);
  return dnnl_set_max_cpu_isa(isa) == dnnl_success || dnnl_get_effective_cpu_isa() == isa;
}

}  // namespace sherd
