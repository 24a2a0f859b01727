#include "train/gemm_rate.h"

#include <algorithm>
#include <chrono>

#include "tensor/gemm.h"
#include "tensor/tensor.h"

namespace sherd {

double measure_gemm_rate(const RuntimePtr& runtime, DType dtype) {
  using Clock = std::chrono::steady_clock;
  if (runtime->device().is_meta()) return 0;
  constexpr std::int64_t M = 1024, N = 512, K = 256;
  const CategoryScope scope(*runtime, Category::staging);
  const Tensor a = Tensor::full(runtime, {M, K}, 1, dtype);
  const Tensor b = Tensor::full(runtime, {N, K}, 1, dtype);
  const Tensor c = Tensor::empty(runtime, {M, N}, dtype);
  Gemm product;
  product.m = M, product.n = N, product.k = K;
  product.a = a.raw(), product.lda = K;
  product.b = b.raw(), product.ldb = K, product.transpose_b = true;
  product.c = c.raw(), product.ldc = N;
  product.in = product.out = dtype;

  gemm(*runtime, product);  // makes what is cached, wakes the threads
  double best = 1e9;
  const auto begin = Clock::now();
  std::chrono::duration<double> spent{};
  do {
    const auto start = Clock::now();
    gemm(*runtime, product);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    spent = Clock::now() - begin;
  } while (spent.count() < 0.015);
  return 2.0 * static_cast<double>(M * N * K) / best;
}

}  // namespace sherd
