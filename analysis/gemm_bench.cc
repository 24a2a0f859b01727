#include "analysis/gemm_bench.h"

#include <chrono>
#include <cmath>

#include "analysis/median.h"
#include "tensor/gemm.h"

namespace sherd {

namespace {

using Clock = std::chrono::steady_clock;

/// y = x wᵀ, dx = dy w, dw = dyᵀ x of a linear layer [out, in] over `rows` rows.
void add_linear(std::vector<GemmShape>& list, int64_t rows, int64_t in, int64_t out, int64_t count,
                bool wide_output = false) {
  list.push_back({rows, out, in, false, true, wide_output, count});
  list.push_back({rows, in, out, false, false, false, count});
  list.push_back({out, in, rows, true, false, true, count});
}

}  // namespace

std::vector<GemmShape> gemms_of(const Workload& w, DType dtype) {
  std::vector<GemmShape> list;
  const int64_t C = w.model.channels;
  add_linear(list, w.tokens(), C, 3 * C, w.model.layers);
  add_linear(list, w.tokens(), C, C, w.model.layers);
  add_linear(list, w.tokens(), C, 4 * C, w.model.layers);
  add_linear(list, w.tokens(), 4 * C, C, w.model.layers);
  const int64_t rows = linear_cross_entropy_rows(w.tokens(), w.model.vocab, dtype);
  add_linear(list, rows, C, w.model.vocab, w.tokens() / rows, true);
  if (w.tokens() % rows != 0) add_linear(list, w.tokens() % rows, C, w.model.vocab, 1, true);
  return list;
}

double time_gemms(const RuntimePtr& runtime, const std::vector<GemmShape>& shapes, DType dtype,
                  int repeats) {
  double seconds = 0;
  for (const GemmShape& s : shapes) {
    const DType out = s.wide ? accumulate_dtype(dtype) : dtype;
    const Tensor a = Tensor::full(runtime, {s.m, s.k}, 0.01, dtype);
    const Tensor b = Tensor::full(runtime, {s.k, s.n}, 0.01, dtype);
    const Tensor c = Tensor::zeros(runtime, {s.m, s.n}, out);
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i) {
      const auto start = Clock::now();
      gemm(*runtime, {.m = s.m,
                      .n = s.n,
                      .k = s.k,
                      .a = a.raw(),
                      .lda = s.transpose_a ? s.m : s.k,
                      .transpose_a = s.transpose_a,
                      .b = b.raw(),
                      .ldb = s.transpose_b ? s.k : s.n,
                      .transpose_b = s.transpose_b,
                      .c = c.raw(),
                      .ldc = s.n,
                      .in = dtype,
                      .out = out});
      if (i > 0) times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    seconds += median(times) * static_cast<double>(s.count);
  }
  return seconds;
}

double gemm_gflops(const RuntimePtr& runtime, DType dtype, int repeats) {
  double logs = 0;
  int n = 0;
  for (GemmShape s : gemms_of(workload("W1"), dtype)) {
    s.count = 1;
    logs += std::log(flops(s) / time_gemms(runtime, {s}, dtype, repeats) / 1e9);
    ++n;
  }
  return std::exp(logs / n);
}

}  // namespace sherd
