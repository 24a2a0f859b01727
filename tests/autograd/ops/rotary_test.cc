#include "autograd/ops/rotary.h"

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

Variable op(const Variable& x, int64_t heads) {
  const Tensor table =
      rotary_table(x.runtime(), x.size(1), x.size(3), {.theta = 100}, accumulate_dtype(x.dtype()));
  return rotary(x, table, heads);
}

OpCase case_of(const char* name, const Shape& shape, int64_t heads) {
  return {.name = name,
          .inputs = {{shape}},
          .op = [=](const auto& in) { return op(in[0], heads); },
          .oracle =
              [=](const CaseValues& in) {
                std::vector<double> y = in[0];
                const int64_t T = shape[1], H = shape[2], D = shape[3];
                for (int64_t row = 0; row < shape[0] * T; ++row)
                  for (int64_t h = 0; h < heads; ++h)
                    for (int64_t i = 0; i < D / 2; ++i) {
                      const auto low = static_cast<size_t>((row * H + h) * D + i);
                      const size_t high = low + static_cast<size_t>(D / 2);
                      const double angle =
                          static_cast<double>(row % T) *
                          std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(D));
                      y[low] = in[0][low] * std::cos(angle) - in[0][high] * std::sin(angle);
                      y[high] = in[0][high] * std::cos(angle) + in[0][low] * std::sin(angle);
                    }
                return y;
              },
          .dtypes = {DType::f32, DType::bf16, DType::f16}};
}

TEST_CASE("rotary over odd shapes") {
  run(case_of("a tail of a vector", {2, 5, 4, 10}, 3));
  run(case_of("a vector and a tail", {2, 3, 2, 42}, 2));
  run(case_of("whole vectors", {1, 4, 3, 64}, 2));
  run(case_of("no head is turned", {2, 3, 2, 4}, 0));
  run(case_of("one position", {3, 1, 2, 4}, 2));
  run(case_of("no batch", {0, 3, 2, 4}, 1));
  run(case_of("no positions", {2, 0, 2, 4}, 1));
}

TEST_CASE("rotary agrees with PyTorch, with and without the scaling of Llama 3") {
  for (const bool scaled : {false, true}) {
    RotaryOptions options{.theta = 500};
    if (scaled)
      options.scaling = Llama3Scaling{
          .factor = 4, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 32};
    const auto whole = [&](const std::vector<Variable>& in) {
      const Variable& x = in[0];
      const Tensor table = rotary_table(x.runtime(), x.size(1), x.size(3), options, x.dtype());
      return rotary(x, table, x.size(2));
    };
    const char* name = scaled ? "rotary_llama3" : "rotary";
    check_golden(name, {"x"}, whole, {1e-5, 2e-6});
    check_golden(name, {"x"}, whole, {1e-11, 1e-12}, DType::f64);
  }
}

TEST_CASE("a product of turned vectors depends on the distance of their positions alone") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const int64_t T = 9, D = 8;
  const Tensor row = uniform(rt, {1, 1, 2, D}, 1, -2, 2, DType::f64);
  const Variable x = tape.constant(row.expand({1, T, 2, D}).contiguous());
  const auto y = op(x, 2).value().to_vector<double>();
  const auto product = [&](int64_t query, int64_t key) {
    double sum = 0;
    for (int64_t i = 0; i < D; ++i)
      sum +=
          y[static_cast<size_t>(query * 2 * D + i)] * y[static_cast<size_t>((key * 2 + 1) * D + i)];
    return sum;
  };
  for (int64_t t = 0; t + 3 < T; ++t) CHECK(std::abs(product(t + 3, t) - product(3, 0)) < 1e-12);
  CHECK(std::abs(product(3, 0) - product(2, 0)) > 1e-3);
}

TEST_CASE("rotary refuses tables and shapes that do not fit, and options that make no sense") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::zeros(rt, {2, 3, 4, 6}));
  CHECK_THROWS_WITH(rotary(x, rotary_table(rt, 4, 6), 4),
                    Catch::Contains("rotary") && Catch::Contains("f32 [4, 6]"));
  CHECK_THROWS_WITH(rotary(x, rotary_table(rt, 3, 6, {}, DType::f64), 4),
                    Catch::Contains("f64 [3, 6]"));
  CHECK_THROWS_WITH(rotary(x, rotary_table(rt, 3, 6), 5), Catch::Contains("cannot turn 5 heads"));
  CHECK_THROWS_WITH(rotary(tape.leaf(Tensor::zeros(rt, {2, 3, 4, 5})), {}, 1),
                    Catch::Contains("even head dim"));
  CHECK_THROWS_WITH(rotary_table(rt, 3, 5), Catch::Contains("even"));
  CHECK_THROWS_WITH(rotary_table(rt, 3, 6, {.theta = 0}), Catch::Contains("theta"));
  CHECK_THROWS_WITH(rotary_table(rt, 3, 6, {.scaling = Llama3Scaling{.factor = 0.5}}),
                    Catch::Contains("factor"));
  CHECK_THROWS_WITH(rotary_table(rt, 3, 6, {.scaling = Llama3Scaling{.low_freq_factor = 4}}),
                    Catch::Contains("low_freq_factor"));
}

}  // namespace
}  // namespace sherd::test
