#include "autograd/ops/rms_norm.h"

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

/// Inputs are x and, where there is one, weight.
std::vector<double> oracle(const CaseValues& in, int64_t columns) {
  std::vector<double> y(in[0].size());
  for (size_t start = 0; start < y.size(); start += static_cast<size_t>(columns)) {
    const double* x = in[0].data() + start;
    double squares = 0;
    for (int64_t c = 0; c < columns; ++c) squares += x[c] * x[c];
    for (int64_t c = 0; c < columns; ++c) {
      const auto i = static_cast<size_t>(c);
      y[start + i] = x[c] / std::sqrt(squares / static_cast<double>(columns) + 1e-5);
      if (in.size() > 1) y[start + i] *= in[1][i];
    }
  }
  return y;
}

OpCase case_of(const char* name, const Shape& shape) {
  const int64_t columns = shape.back();
  return {.name = name,
          .inputs = {{shape}, {{columns}}},
          .op = [](const auto& in) { return rms_norm(in[0], in[1]); },
          .oracle = [=](const CaseValues& in) { return oracle(in, columns); },
          .dtypes = {DType::f32, DType::bf16, DType::f16},
          .f32 = {1e-5, 1e-5}};
}

TEST_CASE("rms_norm over odd shapes") {
  run(case_of("one vector and a tail", {3, 5, 21}));
  run(case_of("four vectors at once and a tail", {2, 69 + 64}));
  run(case_of("three parts of rows", {70, 17}));
  run(case_of("one element", {1}));
  run(case_of("length 1", {4, 1}));
  run(case_of("no rows", {0, 5}));
  run(case_of("no columns", {3, 0}));
}

TEST_CASE("rms_norm without a weight, and with one gradient alone") {
  OpCase c = case_of("no weight", {3, 21});
  c.inputs.resize(1);
  c.op = [](const auto& in) { return rms_norm(in[0], {}); };
  run(c);
  for (const bool of_x : {true, false}) {
    c = case_of("one gradient", {3, 21});
    c.inputs[0].gradient = of_x;
    c.inputs[1].gradient = !of_x;
    run(c);
  }
}

TEST_CASE("rms_norm gives its weight its gradient in f32") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {3, 21}, 1, -2, 2, DType::bf16));
  const Variable w = tape.leaf(uniform(rt, {21}, 2, -2, 2, DType::bf16));
  tape.backward(rms_norm(x, w), Tensor::full(rt, {3, 21}, 1, DType::bf16));
  CHECK(w.grad().dtype() == DType::f32);
  CHECK(x.grad().dtype() == DType::bf16);
}

TEST_CASE("rms_norm agrees with PyTorch") {
  const auto op = [](const auto& in) { return rms_norm(in[0], in[1]); };
  check_golden("rms_norm", {"x", "weight"}, op, {1e-5, 2e-6});
  check_golden("rms_norm", {"x", "weight"}, op, {1e-11, 1e-11}, DType::f64);
}

TEST_CASE("rms_norm refuses a weight of another shape or dtype, and scalars") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::zeros(rt, {3, 4}));
  CHECK_THROWS_WITH(rms_norm(x, tape.leaf(Tensor::zeros(rt, {3}))),
                    Catch::Contains("rms_norm") && Catch::Contains("weight f32 [3]"));
  CHECK_THROWS_WITH(rms_norm(x, tape.leaf(Tensor::zeros(rt, {4}, DType::bf16))),
                    Catch::Contains("weight bf16 [4]"));
  CHECK_THROWS_WITH(rms_norm(tape.leaf(Tensor::zeros(rt, {})), {}), Catch::Contains("scalar"));
}

}  // namespace
}  // namespace sherd::test
