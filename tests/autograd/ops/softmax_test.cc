#include "autograd/ops/softmax.h"

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

OpCase case_of(const char* name, const Shape& shape, bool log) {
  const auto columns = static_cast<size_t>(shape.back());
  const auto oracle = [=](const CaseValues& in) {
    std::vector<double> y = in[0];
    for (size_t start = 0; start < y.size(); start += columns) {
      double sum = 0;
      for (size_t c = 0; c < columns; ++c) sum += std::exp(y[start + c]);
      for (size_t c = 0; c < columns; ++c)
        y[start + c] = log ? y[start + c] - std::log(sum) : std::exp(y[start + c]) / sum;
    }
    return y;
  };
  return {.name = name,
          .inputs = {{shape}},
          .op = [=](const auto& in) { return log ? log_softmax(in[0]) : softmax(in[0]); },
          .oracle = oracle,
          .dtypes = {DType::f32, DType::bf16, DType::f16},
          // bf16 rounds y, and backward starts from the rounded y.
          .half = {3e-2, 5e-2}};
}

TEST_CASE("softmax and log_softmax over odd shapes") {
  for (const bool log : {false, true}) {
    INFO((log ? "log_softmax" : "softmax"));
    run(case_of("a tail", {3, 5, 21}, log));
    run(case_of("four vectors at once and a tail", {2, 133}, log));
    run(case_of("more than one block of a row", {2, 1061}, log));
    OpCase many = case_of("rows for more than one thread", {40, 1061}, log);
    many.gradcheck.relative = 3e-4;  // differences of a sum of 42,440 numbers are no better
    run(many);
    run(case_of("one element", {1}, log));
    run(case_of("length 1", {4, 1}, log));
    run(case_of("no rows", {0, 5}, log));
    run(case_of("no columns", {3, 0}, log));
  }
}

TEST_CASE("softmax takes a gradient of any strides") {
  const auto rt = Runtime::create();
  std::vector<std::vector<double>> grads;
  const Tensor seed = uniform(rt, {21, 3}, 5);
  for (const Tensor& dy : {seed.transpose(0, 1), seed.transpose(0, 1).contiguous()}) {
    Tape tape(rt);
    const Variable x = tape.leaf(uniform(rt, {3, 21}, 1));
    tape.backward(softmax(x), dy);
    grads.push_back(x.grad().to_vector<double>());
  }
  CHECK(same_bits(grads[0], grads[1]));
}

TEST_CASE("softmax is stable, and masks with -infinity") {
  const float inf = HUGE_VALF;
  for (const Isa isa : all_isas()) {
    const auto rt = Runtime::create({.isa = isa});
    Tape tape(rt);
    const std::vector<float> values = {3e38f, 3e38f, -3e38f, -inf, 2, 2};
    const Variable x = tape.leaf(Tensor::from<float>(rt, {2, 3}, values));
    CHECK(softmax(x).value().to_vector<float>() == std::vector<float>{0.5, 0.5, 0, 0, 0.5, 0.5});
    const auto y = log_softmax(x).value().to_vector<float>();
    CHECK(y[0] == Approx(-std::log(2.0)));
    CHECK(y[3] == -inf);
    CHECK(y[5] == Approx(-std::log(2.0)));
    const Variable nan = tape.leaf(Tensor::from<float>(rt, {1, 2}, std::vector<float>{0, NAN}));
    CHECK(std::isnan(softmax(nan).value().to_vector<float>()[0]));
  }
}

TEST_CASE("softmax and log_softmax agree with PyTorch") {
  const auto plain = [](const auto& in) { return softmax(in[0]); };
  const auto log = [](const auto& in) { return log_softmax(in[0]); };
  check_golden("softmax", {"x"}, plain, {1e-5, 1e-7});
  check_golden("log_softmax", {"x"}, log, {1e-5, 1e-6});
  check_golden("softmax_large", {"x"}, plain, {1e-4, 1e-6});  // exp's argument is rounded at 100
  check_golden("log_softmax_large", {"x"}, log, {1e-5, 1e-6});
  for (const char* name : {"softmax", "softmax_large"})
    check_golden(name, {"x"}, plain, {1e-11, 1e-14}, DType::f64);
  for (const char* name : {"log_softmax", "log_softmax_large"})
    check_golden(name, {"x"}, log, {1e-11, 1e-13}, DType::f64);
}

TEST_CASE("softmax refuses scalars and integers") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  CHECK_THROWS_WITH(softmax(tape.leaf(Tensor::zeros(rt, {}))),
                    Catch::Contains("softmax") && Catch::Contains("scalar"));
  CHECK_THROWS_WITH(log_softmax(tape.constant(Tensor::zeros(rt, {2}, DType::i32))),
                    Catch::Contains("log_softmax") && Catch::Contains("i32"));
}

}  // namespace
}  // namespace sherd::test
