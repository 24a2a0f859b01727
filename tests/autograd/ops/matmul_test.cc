#include "autograd/ops/matmul.h"

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

OpCase case_of(const char* name, const Shape& a, const Shape& b) {
  const auto M = static_cast<size_t>(a[a.size() - 2]);
  const auto K = static_cast<size_t>(a.back());
  const auto N = static_cast<size_t>(b.back());
  const auto batch = static_cast<size_t>(a.rows(a.size() - 2));
  return {.name = name,
          .inputs = {{.shape = a}, {.shape = b}},
          .op = [](const auto& v) { return matmul(v[0], v[1]); },
          .oracle =
              [=](const CaseValues& v) {
                std::vector<double> y(batch * M * N, 0);
                for (size_t item = 0; item < batch; ++item)
                  for (size_t i = 0; i < M; ++i)
                    for (size_t j = 0; j < N; ++j)
                      for (size_t k = 0; k < K; ++k)
                        y[(item * M + i) * N + j] +=
                            v[0][(item * M + i) * K + k] * v[1][(item * K + k) * N + j];
                return y;
              },
          .dtypes = {DType::f32, DType::bf16, DType::f16},
          .f32 = {1e-5, 1e-5},
          .half = {2e-2, 6e-2}};
}

TEST_CASE("matmul over odd sizes") {
  run(case_of("one matrix", {7, 5}, {5, 3}));
  run(case_of("a batch", {3, 2, 4, 9}, {3, 2, 9, 17}));
  run(case_of("vectors", {1, 13}, {13, 1}));
  run(case_of("no items", {0, 2, 3}, {0, 3, 4}));
  run(case_of("nothing to sum", {2, 3, 0}, {2, 0, 4}));
}

TEST_CASE("matmul agrees with PyTorch") {
  const auto op = [](const auto& v) { return matmul(v[0], v[1]); };
  for (const char* name : {"matmul", "matmul_batched", "matmul_batched_wide"})
    check_golden(name, {"a", "b"}, op, {1e-6, 2e-6});
}

TEST_CASE("matmul refuses shapes that do not fit") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const auto zeros = [&](const Shape& s) { return tape.constant(Tensor::zeros(rt, s)); };
  CHECK_THROWS_WITH(matmul(zeros({2, 3}), zeros({4, 5})), Catch::Contains("got [2, 3] and [4, 5]"));
  CHECK_THROWS_WITH(matmul(zeros({2, 2, 3}), zeros({3, 3, 5})), Catch::Contains("leading dims"));
}

}  // namespace
}  // namespace sherd::test
