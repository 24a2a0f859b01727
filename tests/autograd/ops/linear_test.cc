#include "autograd/ops/linear.h"

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

OpCase case_of(const char* name, const Shape& x, int64_t out, bool bias,
               Activation f = Activation::none) {
  const int64_t in = x.back();
  std::vector<CaseInput> inputs = {{.shape = x}, {.shape = {out, in}}};
  if (bias) inputs.push_back({.shape = {out}});
  return {.name = name,
          .inputs = inputs,
          .op = [=](const auto& v) { return linear(v[0], v[1], bias ? v[2] : Variable(), f); },
          .oracle =
              [=](const CaseValues& v) {
                std::vector<double> y;
                for (size_t row = 0; in > 0 && row < v[0].size() / static_cast<size_t>(in); ++row)
                  for (size_t o = 0; o < static_cast<size_t>(out); ++o) {
                    double sum = bias ? v[2][o] : 0;
                    for (size_t i = 0; i < static_cast<size_t>(in); ++i) {
                      const double a = v[0][row * static_cast<size_t>(in) + i];
                      sum += (f == Activation::none ? a : gelu(a)) *
                             v[1][o * static_cast<size_t>(in) + i];
                    }
                    y.push_back(sum);
                  }
                return y;
              },
          .dtypes = {DType::f32, DType::bf16, DType::f16},
          .f32 = {1e-5, 1e-5},
          .half = {2e-2, 6e-2}};
}

TEST_CASE("linear over odd sizes") {
  run(case_of("with bias", {3, 5, 17}, 7, true));
  run(case_of("no bias", {4, 9}, 33, false));
  run(case_of("one row", {1, 64}, 5, true));
  run(case_of("one dim", {6}, 4, true));
  run(case_of("no rows", {0, 6}, 4, true));
  run(case_of("activation of the input", {3, 21}, 18, true, Activation::gelu_tanh));
}

TEST_CASE("linear with more rows than a block, and more columns than a block of column sums") {
  OpCase c = case_of("large", {1100, 9}, 131, true);
  c.f32 = {1e-5, 2e-4};  // db sums 1,100 rows
  c.half = {2e-2, 0.3};
  run(c);
}

TEST_CASE("linear agrees with PyTorch") {
  const auto plain = [](const auto& v) { return linear(v[0], v[1], v[2]); };
  const auto no_bias = [](const auto& v) { return linear(v[0], v[1]); };
  check_golden("linear", {"x", "w", "b"}, plain, {1e-6, 1e-6});
  check_golden("linear_one_row", {"x", "w", "b"}, plain, {1e-6, 1e-6});
  check_golden("linear_wide", {"x", "w", "b"}, plain, {1e-6, 2e-6});
  check_golden("linear_no_bias", {"x", "w"}, no_bias, {1e-6, 1e-6});
  check_golden("linear_gelu_tanh", {"x", "w", "b"},
               [](const auto& v) { return linear(v[0], v[1], v[2], Activation::gelu_tanh); },
               {1e-6, 1e-6});
  check_golden("linear_gelu_tanh_no_bias", {"x", "w"},
               [](const auto& v) { return linear(v[0], v[1], {}, Activation::gelu_tanh); },
               {1e-6, 1e-6});
}

TEST_CASE("linear with a frozen weight gives the gradient of x alone") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {3, 4}, 1));
  const Variable w = tape.constant(uniform(rt, {5, 4}, 2));
  tape.backward(linear(x, w), Tensor::full(rt, {3, 5}, 1));
  CHECK(x.grad().shape() == Shape{3, 4});
  CHECK_FALSE(w.grad());
}

TEST_CASE("linear refuses shapes and dtypes that do not fit") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const auto zeros = [&](const Shape& s, DType t = DType::f32) {
    return tape.constant(Tensor::zeros(rt, s, t));
  };
  CHECK_THROWS_WITH(linear(zeros({2, 3}), zeros({4, 5})), Catch::Contains("got [2, 3] and [4, 5]"));
  CHECK_THROWS_WITH(linear(zeros({2, 3}), zeros({4, 3}), zeros({3})), Catch::Contains("b [out]"));
  CHECK_THROWS_WITH(linear(zeros({2, 3}), zeros({4, 3}, DType::bf16)),
                    Catch::Contains("one dtype"));
}

}  // namespace
}  // namespace sherd::test
