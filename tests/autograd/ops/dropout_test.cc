#include "autograd/ops/dropout.h"

#include <cmath>

#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

const RandomKey kKey{0x0123456789abcdefu, 0xfedcba9876543210u};

std::vector<double> oracle(const std::vector<double>& x, double p) {
  std::vector<double> y;
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t word = random_words(kKey, i / 4)[i % 4];
    y.push_back(word >= static_cast<uint32_t>(p * 0x1p32) ? x[i] / (1 - p) : 0);
  }
  return y;
}

TEST_CASE("dropout keeps what the key says, forward and backward") {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{33}, Shape{3, 5, 17}}) {
    for (const double p : {0.1, 0.5, 0.97}) {
      INFO(shape << " " << p);
      run({.name = "dropout",
           .inputs = {{.shape = shape}},
           .op = [&](const std::vector<Variable>& in) { return dropout(in[0], p, kKey); },
           .oracle = [&](const CaseValues& in) { return oracle(in[0], p); },
           .dtypes = {DType::f32, DType::bf16, DType::f16},
           .f32 = {1e-6, 0},
           .half = {1e-2, 0}});
    }
  }
}

TEST_CASE("dropout over several blocks of threads, and its rate") {
  run({.name = "dropout",
       .inputs = {{.shape = {3, 16384 + 7}}},
       .op = [](const std::vector<Variable>& in) { return dropout(in[0], 0.2, kKey); },
       .oracle = [](const CaseValues& in) { return oracle(in[0], 0.2); },
       .dtypes = {DType::f32},
       .gradcheck = {.relative = 1e-6, .directions = 1}});
  const auto rt = Runtime::create();
  Tape tape(rt);
  const int64_t n = 1 << 18;
  const auto y =
      dropout(tape.leaf(Tensor::full(rt, {n}, 1)), 0.2, kKey).value().to_vector<double>();
  double kept = 0;
  for (const double v : y) kept += v > 0;
  const double count = static_cast<double>(n);
  CHECK(std::abs(kept / count - 0.8) < 4 * std::sqrt(0.16 / count));
  CHECK(dropout(tape.leaf(Tensor::full(rt, {n}, 1)), 0.2, kKey.derive(1))
            .value()
            .to_vector<double>() != y);
}

TEST_CASE("p = 0 is the variable itself; a dropped NaN is gone; p is checked") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::full(rt, {64}, std::nan("")));
  CHECK(dropout(x, 0, kKey) == x);
  for (const double v : dropout(x, 0.999999, kKey).value().to_vector<double>()) CHECK(v == 0);
  CHECK_THROWS_WITH(dropout(x, 1, kKey), Catch::Contains("dropout") && Catch::Contains("p < 1"));
  CHECK_THROWS(dropout(x, -0.1, kKey));
}

}  // namespace
}  // namespace sherd::test
