#include "autograd/ops/layer_norm.h"

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

/// Inputs are x and, where there are more, weight then bias.
std::vector<double> oracle(const CaseValues& in, int64_t columns) {
  std::vector<double> y(in[0].size());
  for (size_t start = 0; start < y.size(); start += static_cast<size_t>(columns)) {
    const double* x = in[0].data() + start;
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < columns; ++c) mean += x[c] / static_cast<double>(columns);
    for (int64_t c = 0; c < columns; ++c)
      variance += (x[c] - mean) * (x[c] - mean) / static_cast<double>(columns);
    for (int64_t c = 0; c < columns; ++c) {
      const auto i = static_cast<size_t>(c);
      y[start + i] = (x[c] - mean) / std::sqrt(variance + 1e-5);
      if (in.size() > 1) y[start + i] *= in[1][i];
      if (in.size() > 2) y[start + i] += in[2][i];
    }
  }
  return y;
}

OpCase case_of(const char* name, const Shape& shape) {
  const int64_t columns = shape.back();
  return {.name = name,
          .inputs = {{shape}, {{columns}}, {{columns}}},
          .op = [](const auto& in) { return layer_norm(in[0], in[1], in[2]); },
          .oracle = [=](const CaseValues& in) { return oracle(in, columns); },
          .dtypes = {DType::f32, DType::bf16, DType::f16},
          .f32 = {1e-5, 1e-5}};
}

TEST_CASE("layer_norm over odd shapes") {
  run(case_of("one vector and a tail", {3, 5, 21}));
  run(case_of("four vectors at once and a tail", {2, 69 + 64}));
  run(case_of("three parts of rows", {70, 17}));
  run(case_of("one element", {1}));
  run(case_of("length 1", {4, 1}));
  run(case_of("no rows", {0, 5}));
  run(case_of("no columns", {3, 0}));
}

TEST_CASE("layer_norm over rows enough for parts of more than 32") {
  OpCase c = case_of("parts of 33 rows", {2100, 5});
  c.dtypes = {DType::f32};
  c.f32 = {1e-5, 1e-4};  // sums of 2,100 terms
  run(c);
}

TEST_CASE("layer_norm without weight or bias") {
  OpCase c = case_of("neither", {3, 21});
  c.inputs.resize(1);
  c.op = [](const auto& in) { return layer_norm(in[0], {}, {}); };
  run(c);
  c = case_of("no bias", {3, 21});
  c.inputs.resize(2);
  c.op = [](const auto& in) { return layer_norm(in[0], in[1], {}); };
  run(c);
  c.name = "no weight";
  c.op = [](const auto& in) { return layer_norm(in[0], {}, in[1]); };
  c.oracle = [](CaseValues in) {
    in.insert(in.begin() + 1, std::vector<double>(21, 1.0));
    return oracle(in, 21);
  };
  run(c);
}

TEST_CASE("layer_norm forms only the gradients that are wanted") {
  for (const int wanted : {0, 1, 2}) {
    OpCase c = case_of("one gradient", {3, 21});
    for (int i = 0; i < 3; ++i) c.inputs[static_cast<size_t>(i)].gradient = i == wanted;
    run(c);
  }
}

TEST_CASE("layer_norm takes a gradient of any strides") {
  const auto rt = Runtime::create();
  std::vector<std::vector<double>> grads;
  const Tensor seed = uniform(rt, {21, 3}, 5);
  for (const Tensor& dy : {seed.transpose(0, 1), seed.transpose(0, 1).contiguous()}) {
    Tape tape(rt);
    const Variable x = tape.leaf(uniform(rt, {3, 21}, 1));
    tape.backward(layer_norm(x, {}, {}), dy);
    grads.push_back(x.grad().to_vector<double>());
  }
  CHECK(same_bits(grads[0], grads[1]));
}

TEST_CASE("layer_norm gives weights their gradient in f32") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {3, 21}, 1, -2, 2, DType::bf16));
  const Variable w = tape.leaf(uniform(rt, {21}, 2, -2, 2, DType::bf16));
  tape.backward(layer_norm(x, w, {}), Tensor::full(rt, {3, 21}, 1, DType::bf16));
  CHECK(w.grad().dtype() == DType::f32);
  CHECK(x.grad().dtype() == DType::bf16);
}

TEST_CASE("layer_norm agrees with PyTorch") {
  const auto op = [](const auto& in) { return layer_norm(in[0], in[1], in[2]); };
  check_golden("layer_norm", {"x", "weight", "bias"}, op, {1e-5, 2e-6});
  // Of two columns little is left of the gradient: its terms, a hundred times larger, cancel.
  check_golden("layer_norm_narrow", {"x", "weight", "bias"}, op, {1e-5, 1e-4});
  // The values are near 100, so a rounding of x itself is 4e-6 of a deviation.
  check_golden("layer_norm_far_mean", {"x", "weight", "bias"}, op, {1e-5, 5e-5});
  for (const char* name : {"layer_norm", "layer_norm_far_mean", "layer_norm_narrow"})
    check_golden(name, {"x", "weight", "bias"}, op, {1e-11, 1e-11}, DType::f64);
}

TEST_CASE("layer_norm refuses parameters of another shape or dtype") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::zeros(rt, {3, 4}));
  CHECK_THROWS_WITH(layer_norm(x, tape.leaf(Tensor::zeros(rt, {3})), {}),
                    Catch::Contains("layer_norm") && Catch::Contains("weight f32 [3]"));
  CHECK_THROWS_WITH(layer_norm(x, {}, tape.leaf(Tensor::zeros(rt, {4}, DType::bf16))),
                    Catch::Contains("bias bf16 [4]"));
  CHECK_THROWS_WITH(layer_norm(tape.leaf(Tensor::zeros(rt, {})), {}, {}),
                    Catch::Contains("scalar"));
  CHECK_THROWS_WITH(layer_norm(tape.constant(Tensor::zeros(rt, {2}, DType::i32)), {}, {}),
                    Catch::Contains("layer_norm") && Catch::Contains("i32"));
}

}  // namespace
}  // namespace sherd::test
