// How fast attention is: ms and GFLOP/s of forward and of both directions, counting what the mask
// leaves visible, beside oneDNN's f32 GEMM rate in the same run (one thread a core, as our GEMM
// uses it). Usage: attention_bench [threads [runs [name]]]
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "analysis/median.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/shape_ops.h"
#include "base/progress.h"

namespace sherd {
namespace {

struct Case {
  const char* name;
  int64_t B, T, S, H, D;
  bool causal;
  DType dtype;
};

constexpr Case kCases[] = {
    {"w1", 8, 256, 256, 6, 64, true, DType::f32},
    {"w1_bf16", 8, 256, 256, 6, 64, true, DType::bf16},
    {"w3", 4, 64, 64, 12, 64, true, DType::f32},
    {"nanogpt", 12, 64, 64, 4, 32, true, DType::f32},
    {"long", 1, 4096, 4096, 6, 64, true, DType::f32},
    {"long_bf16", 1, 4096, 4096, 6, 64, true, DType::bf16},
    {"both_ways", 2, 1024, 1024, 6, 64, false, DType::f32},
    {"d128", 1, 2048, 2048, 8, 128, true, DType::f32},
    {"d80", 1, 2048, 2048, 8, 80, true, DType::f32},
    {"one_query", 1, 1, 4096, 12, 64, true, DType::f32},
    {"one_query_bf16", 1, 1, 4096, 12, 64, true, DType::bf16},
};

template <class Body>
double median_ms(int runs, const Body& body) {
  body();
  std::vector<double> ms;
  for (int i = 0; i < runs; ++i) {
    const double begin_s = steady_seconds();
    body();
    ms.push_back((steady_seconds() - begin_s) * 1e3);
  }
  return median(std::move(ms));
}

/// GFLOP/s of c [M, N] = a [M, K] b [K, N], M split over the threads.
double gemm_rate(const RuntimePtr& runtime, int runs) {
  constexpr int64_t M = 2048;
  constexpr int64_t N = 1536;
  constexpr int64_t K = 384;
  const Tensor a = Tensor::full(runtime, {M, K}, 0.5);
  const Tensor b = Tensor::full(runtime, {K, N}, 0.5);
  const Tensor c = Tensor::zeros(runtime, {M, N});
  const int64_t parts = runtime->pool().threads();
  const double ms = median_ms(runs, [&] {
    runtime->pool().run(parts, [&](int64_t i) {
      omp_set_num_threads(1);
      const int64_t m0 = M * i / parts;
      dnnl_sgemm('N', 'N', M * (i + 1) / parts - m0, N, K, 1, a.data<float>() + m0 * K, K,
                 b.data<float>(), N, 0, c.data<float>() + m0 * N, N);
    });
  });
  return 2e-6 * M * N * K / ms;
}

/// Visible (query, key) pairs of one head.
double pairs(const Case& c) {
  double n = 0;
  for (int64_t t = 0; t < c.T; ++t)
    n += static_cast<double>(c.causal ? std::max<int64_t>(0, t + 1 + c.S - c.T) : c.S);
  return n;
}

void run(const Case& c, const RuntimePtr& runtime, int runs) {
  Tape tape(runtime);
  const auto values = [&](int64_t steps, int64_t heads) {
    std::vector<float> x(static_cast<size_t>(c.B * steps * heads * c.D));
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>((i * 2654435761u >> 8) % 1024) / 512 - 1;
    return Tensor::from<float>(runtime, {c.B, steps, heads, c.D}, x).to(c.dtype);
  };
  const Variable q = tape.constant(values(c.T, c.H));
  const Variable kv = tape.constant(values(c.S, 2 * c.H));
  const Variable k = tape.constant(kv.value().slice(2, 0, c.H));
  const Variable v = tape.constant(kv.value().slice(2, c.H, 2 * c.H));
  const double flops = 4e-6 * static_cast<double>(c.B * c.H * c.D) * pairs(c);
  const double rate = gemm_rate(runtime, 20);
  const double forward = median_ms(runs, [&] { attention(q, k, v, {.causal = c.causal}); });
  std::printf("%-15s forward %8.3f ms %6.1f GFLOP/s %4.2f of GEMM", c.name, forward,
              flops / forward, flops / forward / rate);
  if (c.S == c.T) {
    const Tensor seed = values(c.T, c.H);
    const Tensor packed = values(c.T, 3 * c.H);
    const double both = median_ms(runs, [&] {
      const Variable qkv = tape.leaf(packed);
      const std::vector<Variable> parts = split(qkv, 2, {c.H, c.H, c.H});
      tape.backward(attention(parts[0], parts[1], parts[2], {.causal = c.causal}), seed);
    });
    std::printf("   both %8.3f ms %6.1f GFLOP/s %4.2f", both, 3.5 * flops / both,
                3.5 * flops / both / rate);
  }
  std::printf("   (GEMM %.0f)\n", rate);
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int runs = argc > 2 ? std::atoi(argv[2]) : 15;
  const auto runtime = sherd::Runtime::create({.threads = threads});
  std::printf("%d threads, %s\n", threads, std::string(name_of(runtime->isa())).c_str());
  for (const sherd::Case& c : sherd::kCases)
    if (argc < 4 || std::strcmp(argv[3], c.name) == 0) run(c, runtime, runs);
}
