#include "autograd/ops/linear_cross_entropy.h"

#include <cmath>

#include "autograd/ops/linear.h"
#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

std::vector<double> oracle(const CaseValues& in, size_t C) {
  const size_t V = in[1].size() / C;
  double loss = 0;
  for (size_t n = 0; n < in[2].size(); ++n) {
    if (in[2][n] < 0) continue;
    double sum = 0, target = 0;
    for (size_t v = 0; v < V; ++v) {
      double x = 0;
      for (size_t c = 0; c < C; ++c) x += in[0][n * C + c] * in[1][v * C + c];
      sum += std::exp(x);
      if (v == static_cast<size_t>(in[2][n])) target = x;
    }
    loss += std::log(sum) - target;
  }
  return {loss};
}

OpCase case_of(const char* name, int64_t C, int64_t V, std::vector<int64_t> targets) {
  const auto N = static_cast<int64_t>(targets.size());
  return {.name = name,
          .inputs = {{.shape = {N, C}},
                     {.shape = {V, C}},
                     {.shape = {N}, .dtype = DType::i32, .values = targets}},
          .op = [](const auto& v) { return linear_cross_entropy(v[0], v[1], v[2].value()).loss; },
          .oracle = [=](const CaseValues& in) { return oracle(in, static_cast<size_t>(C)); },
          .dtypes = {DType::f32, DType::bf16, DType::f16},
          .f32 = {1e-5, 1e-5},
          .half = {2e-2, 3e-2}};
}

TEST_CASE("linear_cross_entropy in f16 keeps gradients that are small until they are scaled") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  // The right one of two classes has all but 4e-8 of the probability: less than f16 can tell from
  // 0.
  const Variable h = tape.leaf(Tensor::from<double>(rt, {1, 1}, {1.0}).to(DType::f16));
  const Variable w = tape.leaf(Tensor::from<double>(rt, {2, 1}, {0.0, -17.0}).to(DType::f16));
  const LossResult r = linear_cross_entropy(h, w, Tensor::from<int32_t>(rt, {1}, {0}));
  tape.backward(r.loss, Tensor::full(rt, {}, 0x1p20));
  const double rest = 1 / (1 + std::exp(17.0));
  CHECK(h.grad().item() == Approx(-17 * rest * 0x1p20).epsilon(1e-2));
  CHECK(w.grad().to_vector<double>()[1] == Approx(rest * 0x1p20).epsilon(1e-2));
}

TEST_CASE("linear_cross_entropy over odd sizes") {
  run(case_of("some ignored", 9, 21, {3, 0, -1, 20, 7}));
  run(case_of("all ignored", 5, 7, {-1, -1}));
  run(case_of("one row", 8, 3, {2}));
  run(case_of("one class", 8, 1, {0, 0, -1}));
}

TEST_CASE("case 36: linear_cross_entropy in several chunks equals the logits whole") {
  // 400,000 classes leave 20 rows (16, rounded) of f32 to a chunk: 50 rows are four chunks.
  const auto rt = Runtime::create({.threads = 2});
  Tape tape(rt);
  const int64_t N = 50, C = 3, V = 400000;
  const Variable h = tape.leaf(uniform(rt, {N, C}, 1));
  const Variable w = tape.leaf(uniform(rt, {V, C}, 2));
  std::vector<int32_t> targets(static_cast<size_t>(N));
  for (int32_t n = 0; n < N; ++n) targets[static_cast<size_t>(n)] = n % 7 == 0 ? -1 : n * 7919;
  const Tensor t = Tensor::from<int32_t>(rt, {N}, targets);
  rt->allocator().reset_peak();
  const int64_t before = rt->allocator().live_bytes();
  const LossResult chunked = linear_cross_entropy(h, w, t);
  const int64_t gradients = h.value().numel() * 4 + w.value().numel() * 4;
  CHECK(rt->allocator().peak().bytes - before <=
        kLogitsChunkBytes + gradients + (int64_t{1} << 20));
  tape.backward(chunked.loss);
  const auto dh = h.grad().to_vector<double>(), dw = w.grad().to_vector<double>();
  h.set_grad({}), w.set_grad({});
  rt->allocator().reset_peak();
  const LossResult whole = cross_entropy(linear(h, w), t);
  CHECK(chunked.tokens == whole.tokens);
  CHECK(chunked.loss.value().item() == Approx(whole.loss.value().item()).epsilon(1e-6));
  tape.backward(whole.loss);
  // Whole logits are the peak, and it says so.
  CHECK(rt->allocator().peak().bytes - before > 4 * N * V);
  CHECK(rt->allocator().peak().where.back() == "backward of cross_entropy");
  CHECK(near(dh, h.grad().to_vector<double>(), {1e-6, 1e-6}));
  CHECK(near(dw, w.grad().to_vector<double>(), {1e-6, 1e-7}));
}

TEST_CASE("linear_cross_entropy agrees with PyTorch") {
  for (const char* name :
       {"linear_cross_entropy", "linear_cross_entropy_one_row", "linear_cross_entropy_all_ignored"})
    check_golden(name, {"h", "w", "targets"},
                 [](const auto& v) { return linear_cross_entropy(v[0], v[1], v[2].value()).loss; },
                 {1e-6, 1e-6});
  check_golden(
      "linear_cross_entropy_smoothed", {"h", "w", "targets"},
      [](const auto& v) {
        return linear_cross_entropy(v[0], v[1], v[2].value(), {.label_smoothing = 0.1}).loss;
      },
      {1e-6, 1e-6});
}

TEST_CASE("linear_cross_entropy without gradients keeps none") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable h = tape.constant(uniform(rt, {4, 8}, 1));
  const Variable w = tape.constant(uniform(rt, {16, 8}, 2));
  const int64_t before = rt->allocator().live_bytes();
  const LossResult r = linear_cross_entropy(h, w, Tensor::zeros(rt, {4}, DType::i32));
  CHECK_FALSE(r.loss.requires_grad());
  CHECK(rt->allocator().live_bytes() == before + 64);
}

TEST_CASE("linear_cross_entropy refuses what does not fit") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const auto zeros = [&](const Shape& s) { return tape.constant(Tensor::zeros(rt, s)); };
  const auto targets = Tensor::full(rt, {2}, 5, DType::i32);
  CHECK_THROWS_WITH(linear_cross_entropy(zeros({2, 3}), zeros({4, 5}), targets),
                    Catch::Contains("[2, 3] and [4, 5]"));
  CHECK_THROWS_WITH(linear_cross_entropy(zeros({2, 3}), zeros({4, 3}), targets),
                    Catch::Contains("target 5 of row 0"));
}

}  // namespace
}  // namespace sherd::test
