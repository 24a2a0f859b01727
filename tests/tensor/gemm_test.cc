#include "tensor/gemm.h"

#include <cmath>
#include <random>
#include <vector>

#include "tensor/tensor.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

Tensor random_tensor(const RuntimePtr& rt, const Shape& shape, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> x(static_cast<size_t>(shape.numel()));
  for (auto& v : x) v = static_cast<double>(random()) / 4294967296.0 - 0.5;
  return Tensor::from<double>(rt, shape, x).to(dtype);
}

struct Case {
  int64_t m, n, k;
  bool ta, tb;
  DType in, out;
  bool bias, accumulate;
  int64_t batch = 1;
};

/// Runs the case on `rt`, with leading dims wider than the matrices, and returns c.
Tensor run(const RuntimePtr& rt, const Case& t) {
  const int64_t rows_a = t.ta ? t.k : t.m, columns_a = t.ta ? t.m : t.k;
  const int64_t rows_b = t.tb ? t.n : t.k, columns_b = t.tb ? t.k : t.n;
  const int64_t lda = columns_a + 3, ldb = columns_b + 1, ldc = t.n + 2;
  const Tensor a = random_tensor(rt, {t.batch, rows_a, lda}, t.in, 1);
  const Tensor b = random_tensor(rt, {t.batch, rows_b, ldb}, t.in, 2);
  const Tensor bias = random_tensor(rt, {t.n}, t.in, 3);
  const Tensor c = random_tensor(rt, {t.batch, t.m, ldc}, t.out, 4);
  gemm(*rt, {.m = t.m,
             .n = t.n,
             .k = t.k,
             .a = a.raw(),
             .lda = lda,
             .transpose_a = t.ta,
             .b = b.raw(),
             .ldb = ldb,
             .transpose_b = t.tb,
             .c = c.raw(),
             .ldc = ldc,
             .accumulate = t.accumulate,
             .bias = t.bias ? bias.raw() : nullptr,
             .in = t.in,
             .out = t.out,
             .batch = t.batch,
             .stride_a = rows_a * lda,
             .stride_b = rows_b * ldb,
             .stride_c = t.m * ldc});
  return c;
}

/// Worst |c - oracle| of the case, the oracle being a plain loop in f64.
double worst_error(const Case& t, const Tensor& got) {
  const auto rt = Runtime::create();
  const int64_t rows_a = t.ta ? t.k : t.m, columns_a = t.ta ? t.m : t.k;
  const int64_t rows_b = t.tb ? t.n : t.k, columns_b = t.tb ? t.k : t.n;
  const int64_t lda = columns_a + 3, ldb = columns_b + 1, ldc = t.n + 2;
  const auto a = random_tensor(rt, {t.batch, rows_a, lda}, t.in, 1).to_vector<double>();
  const auto b = random_tensor(rt, {t.batch, rows_b, ldb}, t.in, 2).to_vector<double>();
  const auto bias = random_tensor(rt, {t.n}, t.in, 3).to_vector<double>();
  auto c = random_tensor(rt, {t.batch, t.m, ldc}, t.out, 4).to_vector<double>();
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  for (int64_t item = 0; item < t.batch; ++item)
    for (int64_t i = 0; i < t.m; ++i)
      for (int64_t j = 0; j < t.n; ++j) {
        double x = t.bias ? bias[at(j)] : 0;
        for (int64_t k = 0; k < t.k; ++k)
          x += a[at(item * rows_a * lda + (t.ta ? k * lda + i : i * lda + k))] *
               b[at(item * rows_b * ldb + (t.tb ? j * ldb + k : k * ldb + j))];
        double& y = c[at((item * t.m + i) * ldc + j)];
        y = t.accumulate ? y + x : x;
      }
  // Also what lies between the rows: it must not have been written.
  const auto g = got.to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < g.size(); ++i) worst = std::max(worst, std::abs(g[i] - c[i]));
  return worst;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const DType in : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                      {3, 17, 5},
                                      {37, 33, 70},
                                      {2, 130, 64},
                                      {530, 20, 33},
                                      {20, 1100, 300},
                                      {5, 7, 0},
                                      {0, 4, 4},
                                      {1100, 40, 17}}) {
          const DType wide = in == DType::f64 ? in : DType::f32;
          list.push_back({m, n, k, ta, tb, in, in, true, false});
          list.push_back({m, n, k, ta, tb, in, wide, false, true});
        }
  list.push_back({9, 11, 13, false, true, DType::f32, DType::f32, false, false, 5});
  list.push_back({9, 11, 13, true, false, DType::bf16, DType::bf16, false, true, 3});
  return list;
}

TEST_CASE("products equal a plain loop, for every layout, dtype and instruction set") {
  for (int level = 0; level <= static_cast<int>(best_isa()); ++level) {
    const auto rt = Runtime::create({.threads = 2, .isa = static_cast<Isa>(level)});
    for (const Case& t : cases()) {
      INFO(name_of(static_cast<Isa>(level))
           << ' ' << name_of(t.in) << "->" << name_of(t.out) << ' ' << t.m << 'x' << t.n << 'x'
           << t.k << ' ' << t.ta << t.tb);
      const double scale = std::sqrt(static_cast<double>(t.k) + 1);
      const double tolerance = t.out == DType::bf16  ? 0x1p-8 * scale
                               : t.out == DType::f16 ? 0x1p-10 * scale
                               : t.out == DType::f64 ? 1e-14 * scale
                                                     : 3e-7 * scale;
      CHECK(worst_error(t, run(rt, t)) <= tolerance);
    }
  }
}

TEST_CASE("the number of threads does not change a bit") {
  const auto one = Runtime::create({.threads = 1});
  const auto three = Runtime::create({.threads = 3});
  for (const Case& t : {Case{1500, 300, 257, false, true, DType::f32, DType::f32, true, false},
                        Case{1500, 64, 100, true, false, DType::bf16, DType::f32, false, true},
                        Case{70, 1300, 300, false, true, DType::f32, DType::f32, true, false},
                        Case{130, 700, 200, true, false, DType::f32, DType::f32, false, true}})
    CHECK(run(one, t).to_vector<float>() == run(three, t).to_vector<float>());
}

TEST_CASE("a dtype that cannot be is refused") {
  const auto rt = Runtime::create();
  CHECK_THROWS_WITH(gemm(*rt, {.m = 1, .n = 1, .k = 1, .in = DType::f32, .out = DType::bf16}),
                    Catch::Contains("gemm does not compute bf16 from f32"));
}

}  // namespace
}  // namespace sherd
