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

}  // namespace

void gemm_onednn(const Gemm& g) {
  const OneOmpThread one_thread;
  auto* c = static_cast<float*>(g.c);
  float beta = g.accumulate ? 1.0f : 0.0f;
  if (g.bias != nullptr) {
    const auto* bias = static_cast<const float*>(g.bias);
    for (int64_t i = 0; i < g.m; ++i) std::copy(bias, bias + g.n, c + i * g.ldc);
    beta = 1.0f;
  }
  const dnnl_status_t status = dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m,
                                          g.n, g.k, 1.0f, static_cast<const float*>(g.a), g.lda,
                                          static_cast<const float*>(g.b), g.ldb, beta, c, g.ldc);
  if (status != dnnl_success)
    fail_as(ErrorKind::device, "oneDNN refused a matrix product of m, n, k", g.m, g.n, g.k,
            "status", status);
}

}  // namespace sherd::detail
