#include "autograd/ops/swiglu.h"

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

OpCase case_of(const char* name, const Shape& shape) {
  const auto width = static_cast<size_t>(shape.back() / 2);
  return {.name = name,
          .inputs = {{.shape = shape, .low = -6, .high = 6}},
          .op = [](const auto& in) { return swiglu(in[0]); },
          .oracle =
              [=](const CaseValues& in) {
                std::vector<double> y;
                for (size_t row = 0; row < in[0].size(); row += 2 * width)
                  for (size_t i = 0; i < width; ++i)
                    y.push_back(in[0][row + i] / (1 + std::exp(-in[0][row + i])) *
                                in[0][row + width + i]);
                return y;
              },
          .dtypes = {DType::f32, DType::bf16, DType::f16},
          .f32 = {1e-5, 2e-6}};
}

TEST_CASE("swiglu over odd shapes") {
  run(case_of("a vector and a tail", {3, 5, 42}));
  run(case_of("whole vectors", {4, 64}));
  run(case_of("one", {2}));
  run(case_of("no rows", {0, 6}));
  run(case_of("no columns", {3, 0}));
}

TEST_CASE("swiglu over more than one block of rows") {
  OpCase c = case_of("blocks", {3, 2 * 16384 + 10});
  c.dtypes = {DType::f32};
  c.gradcheck = {.relative = 1e-6, .directions = 1};
  run(c);
}

TEST_CASE("swiglu agrees with PyTorch") {
  const auto op = [](const auto& in) { return swiglu(in[0]); };
  check_golden("swiglu", {"x"}, op, {1e-5, 2e-6});
  check_golden("swiglu", {"x"}, op, {1e-12, 1e-13}, DType::f64);
}

TEST_CASE("swiglu refuses an odd last dim") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  CHECK_THROWS_WITH(swiglu(tape.leaf(Tensor::zeros(rt, {3, 5}))),
                    Catch::Contains("swiglu") && Catch::Contains("[3, 5]"));
  CHECK_THROWS_WITH(swiglu(tape.leaf(Tensor::zeros(rt, {}))), Catch::Contains("even last dim"));
}

}  // namespace
}  // namespace sherd::test
