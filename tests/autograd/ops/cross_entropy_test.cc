#include "autograd/ops/cross_entropy.h"

#include <cmath>

#include "autograd/ops/cross_entropy_kernels.h"
#include "tensor/kernels/launch.h"
#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

using Ints = std::vector<int64_t>;

std::vector<double> oracle(const CaseValues& in, int64_t columns, double smoothing = 0) {
  double loss = 0;
  for (size_t row = 0; row < in[1].size(); ++row) {
    if (in[1][row] < 0) continue;
    const double* x = in[0].data() + static_cast<int64_t>(row) * columns;
    double sum = 0, mean = 0;
    for (int64_t c = 0; c < columns; ++c) sum += std::exp(x[c]);
    for (int64_t c = 0; c < columns; ++c) mean += x[c] / static_cast<double>(columns);
    loss +=
        std::log(sum) - (1 - smoothing) * x[static_cast<int64_t>(in[1][row])] - smoothing * mean;
  }
  return {loss};
}

OpCase case_of(const char* name, int64_t columns, Ints targets, DType index = DType::i32) {
  const auto rows = static_cast<int64_t>(targets.size());
  return {.name = name,
          .inputs = {{.shape = {rows, columns}},
                     {.shape = {rows}, .dtype = index, .values = std::move(targets)}},
          .op = [](const auto& in) { return cross_entropy(in[0], in[1].value()).loss; },
          .oracle = [=](const CaseValues& in) { return oracle(in, columns); },
          .dtypes = {DType::f32, DType::bf16, DType::f16}};
}

TEST_CASE("cross_entropy over odd sizes") {
  run(case_of("a tail", 21, {3, 0, -1, 20, 7}));
  run(case_of("i64 targets", 133, {3, 0, 132}, DType::i64));
  run(case_of("all ignored", 21, {-1, -1, -1}));
  std::vector<int64_t> many;  // rows for more than one thread
  for (int64_t row = 0; row < 40; ++row) many.push_back(row % 9 == 0 ? -1 : row * 26);
  run(case_of("more than one block of a row", 1061, many));
  run(case_of("one class", 1, {0, -1}));
  run(case_of("one row", 7, {6}));
  OpCase c = case_of("more than one block of a row", 2100, {2099, 1023, 1024, -1});
  c.inputs[0].low = -20, c.inputs[0].high = 20;  // the maximum rises from block to block
  c.f32 = {2e-5, 2e-6};                          // errors of exp's argument
  run(c);
}

TEST_CASE("cross_entropy with smoothed labels") {
  for (const auto& [columns, targets] : {std::pair(int64_t{21}, Ints{3, 0, -1, 20, 7}),
                                         {1061, Ints{1060, -1, 5}},
                                         {1, Ints{0, -1}}}) {
    OpCase c = case_of("smoothed", columns, targets);
    c.op = [](const auto& in) {
      return cross_entropy(in[0], in[1].value(), {.label_smoothing = 0.1}).loss;
    };
    c.oracle = [columns = columns](const CaseValues& in) { return oracle(in, columns, 0.1); };
    run(c);
  }
  const auto rt = Runtime::create();
  Tape tape(rt);
  CHECK_THROWS_WITH(cross_entropy(tape.leaf(Tensor::zeros(rt, {1, 3})),
                                  Tensor::zeros(rt, {1}, DType::i32), {.label_smoothing = 1.5}),
                    Catch::Contains("label_smoothing") && Catch::Contains("1.5"));
}

TEST_CASE("cross_entropy without rows is zero") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::zeros(rt, {0, 5}));
  const LossResult r = cross_entropy(x, Tensor::zeros(rt, {0}, DType::i32));
  CHECK(r.loss.value().item() == 0);
  CHECK(r.tokens == 0);
  tape.backward(r.loss);
  CHECK(x.grad().shape() == Shape{0, 5});
}

TEST_CASE("cross_entropy counts tokens, and ignores any index asked for") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Tensor targets = Tensor::from<int32_t>(rt, {4}, std::vector<int32_t>{2, 0, 2, 1});
  const Variable x = tape.leaf(uniform(rt, {4, 3}, 1));
  CHECK(cross_entropy(x, targets).tokens == 4);
  const LossResult r = cross_entropy(x, targets, {.ignore_index = 2});
  CHECK(r.tokens == 2);
  tape.backward(r.loss);
  tape.clear();
  REQUIRE(x.grad());
  const auto dx = x.grad().to_vector<double>();
  for (const size_t i : {0u, 1u, 2u, 6u, 7u, 8u}) CHECK(dx[i] == 0);
  CHECK(dx[3] < 0);
  CHECK(dx[10] < 0);
}

TEST_CASE("cross_entropy is stable at the ends of the range") {
  const auto rt = Runtime::create();
  const float inf = HUGE_VALF;
  Tape tape(rt);
  const std::vector<float> values = {3e38f, 0, 0,    -3e38f, -3e38f, -3e38f,
                                     -inf,  5, -inf, -inf,   0,      0};
  const Variable x = tape.leaf(Tensor::from<float>(rt, {4, 3}, values));
  const Tensor targets = Tensor::from<int32_t>(rt, {4}, std::vector<int32_t>{0, 1, 1, 2});
  const LossResult r = cross_entropy(x, targets);
  CHECK(r.loss.value().item() == Approx(std::log(3.0) + std::log(2.0)).epsilon(1e-6));
  tape.backward(r.loss);
  const double third = 1.0 / 3, half = 0.5;
  CHECK(near(x.grad().to_vector<double>(),
             {0, 0, 0, third, -2 * third, third, 0, 0, 0, 0, half, -half}, {1e-6, 0}));
}

TEST_CASE("cross_entropy skips a masked beginning of a long row") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  std::vector<float> values(3000, -HUGE_VALF);
  values[2500] = 1;
  values[2999] = 1;
  const Variable x = tape.leaf(Tensor::from<float>(rt, {1, 3000}, values));
  const LossResult r = cross_entropy(x, Tensor::from<int32_t>(rt, {1}, std::vector<int32_t>{2500}));
  CHECK(r.loss.value().item() == Approx(std::log(2.0)).epsilon(1e-6));
}

TEST_CASE("the seed of cross_entropy scales its gradient") {
  const auto rt = Runtime::create();
  std::vector<std::vector<double>> grads;
  for (const double seed : {1.0, 1024.0}) {
    Tape tape(rt);
    const Variable x = tape.leaf(uniform(rt, {2, 5}, 1));
    tape.backward(cross_entropy(x, Tensor::zeros(rt, {2}, DType::i32)).loss,
                  Tensor::full(rt, {}, seed));
    grads.push_back(x.grad().to_vector<double>());
  }
  for (auto& g : grads[1]) g /= 1024;
  CHECK(same_bits(grads[1], grads[0]));
}

/// What the fused head uses: loss and dlogits of a chunk in one call, over the logits or beside.
template <class T, class D>
void check_rows(const Tensor& logits, const Tensor& dlogits, const Tensor& exps, double scale,
                Tolerance tolerance) {
  INFO(describe(logits) << " to " << describe(dlogits) << (exps ? ", exps kept" : ""));
  const RuntimePtr& rt = logits.runtime();
  const int64_t rows = logits.size(0), columns = logits.size(1);
  std::vector<int32_t> targets(static_cast<size_t>(rows));
  for (int32_t row = 0; row < rows; ++row) targets[static_cast<size_t>(row)] = row * 3 - 1;
  Tape tape(rt);
  const Variable x = tape.leaf(logits.to(DType::f64).clone());
  const Tensor indices = Tensor::from<int32_t>(rt, {rows}, targets);
  const LossResult want = cross_entropy(x, indices);
  tape.backward(want.loss, Tensor::full(rt, {}, scale, DType::f64));
  std::vector<double> row_loss(targets.size());
  launch(
      *rt,
      kernels::CrossEntropyRows<T, D>{logits.data<T>(), indices.data<int32_t>(), -1, columns,
                                      static_cast<Accumulate<T>>(scale), 0, row_loss.data(),
                                      nullptr, dlogits.data<D>(), exps ? exps.data<T>() : nullptr},
      rows, 1);
  double loss = 0;
  for (const double l : row_loss) loss += l;
  CHECK(loss == Approx(want.loss.value().item()).epsilon(1e-6));
  CHECK(near(dlogits.to_vector<double>(), x.grad().to_vector<double>(), tolerance));
}

TEST_CASE("CrossEntropyRows gives the gradient with the loss") {
  for (const Isa isa : all_isas()) {
    INFO(name_of(isa));
    const auto rt = Runtime::create({.isa = isa});
    const auto logits = [&](DType dtype) { return uniform(rt, {5, 1061}, 1, -20, 20, dtype); };
    const auto like = [&](DType dtype) { return Tensor::empty(rt, {5, 1061}, dtype); };
    const Tensor x = logits(DType::f32), d = logits(DType::f64);
    const Tensor f32 = like(DType::f32), bf = like(DType::bf16), f64 = like(DType::f64);
    check_rows<float, float>(x, f32, {}, 1, {2e-5, 1e-7});
    check_rows<float, float>(x, f32, f32, 1, {2e-5, 1e-7});
    check_rows<float, bf16>(x, bf, {}, 1, {4e-3, 1e-7});
    check_rows<float, bf16>(x, bf, like(DType::f32), 1, {4e-3, 1e-7});
    check_rows<float, f16>(x, like(DType::f16), {}, 4096, {5e-4, 1e-7});
    check_rows<double, double>(d, f64, {}, 1, {1e-12, 1e-15});
    check_rows<double, double>(d, f64, f64, 1, {1e-12, 1e-15});
    check_rows<bf16, bf16>(logits(DType::bf16), bf, {}, 1, {4e-3, 1e-7});
    check_rows<f16, f16>(logits(DType::f16), like(DType::f16), {}, 4096, {5e-4, 1e-7});
    // Over the logits.
    check_rows<float, float>(x, x, {}, 1, {2e-5, 1e-7});
    const Tensor x2 = logits(DType::f32), x3 = logits(DType::f32);
    check_rows<float, float>(x2, x2, x2, 1, {2e-5, 1e-7});
    check_rows<float, bf16>(x3, bf, x3, 1, {4e-3, 1e-7});
  }
}

TEST_CASE("CrossEntropyRows keeps exponentials of rows that begin masked, or are very long") {
  const auto rt = Runtime::create();
  std::vector<float> values(1024 * 256 + 7, -HUGE_VALF);
  values[2500] = 1;
  values.back() = 1;
  const int32_t target = 2500;
  double loss = 0;
  std::vector<float> d(values.size());
  const auto columns = static_cast<int64_t>(values.size());
  launch(*rt,
         kernels::CrossEntropyRows<float, float>{values.data(), &target, -1, columns, 1, 0, &loss,
                                                 nullptr, d.data(), d.data()},
         1, 1);
  CHECK(loss == Approx(std::log(2.0)).epsilon(1e-6));
  CHECK(d[2500] == -0.5);
  CHECK(d.back() == 0.5);
  CHECK(d[0] == 0);
  CHECK(d[3000] == 0);
}

TEST_CASE("cross_entropy agrees with PyTorch") {
  // The golden's logits are h wᵀ, and its gradient is known through them: dh = dlogits w.
  for (const char* name : {"linear_cross_entropy", "linear_cross_entropy_one_row",
                           "linear_cross_entropy_all_ignored"}) {
    INFO(name);
    const Golden golden(name);
    const auto rt = Runtime::create();
    Tape tape(rt);
    const auto h = golden.values("in.h"), w = golden.values("in.w");
    const Shape shape = golden.tensor(rt, "in.h").shape();
    const auto rows = static_cast<size_t>(shape[0]), dim = static_cast<size_t>(shape[1]);
    const size_t classes = w.size() / dim;
    std::vector<double> logits(rows * classes, 0);
    for (size_t n = 0; n < rows; ++n)
      for (size_t v = 0; v < classes; ++v)
        for (size_t k = 0; k < dim; ++k) logits[n * classes + v] += h[n * dim + k] * w[v * dim + k];
    const Variable x =
        tape.leaf(tensor_of(rt, {shape[0], static_cast<int64_t>(classes)}, logits, DType::f64));
    const LossResult r = cross_entropy(x, golden.tensor(rt, "in.targets"));
    CHECK(near(r.loss.value(), golden.values("out"), {1e-12, 1e-12}));
    tape.backward(r.loss, golden.tensor(rt, "dout", DType::f64));
    const auto dx = x.grad().to_vector<double>();
    std::vector<double> dh(rows * dim, 0);
    for (size_t n = 0; n < rows; ++n)
      for (size_t v = 0; v < classes; ++v)
        for (size_t k = 0; k < dim; ++k) dh[n * dim + k] += dx[n * classes + v] * w[v * dim + k];
    CHECK(near(dh, golden.values("grad.h"), {1e-11, 1e-12}));
  }
}

TEST_CASE("cross_entropy names a target that is out of range") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::zeros(rt, {3, 5}));
  const auto targets = [&](const std::vector<int32_t>& t) {
    return Tensor::from<int32_t>(rt, {static_cast<int64_t>(t.size())}, t);
  };
  CHECK_THROWS_WITH(cross_entropy(x, targets({0, 5, 9})),
                    Catch::Contains("target 5 of row 1 with 5 classes"));
  CHECK_THROWS_WITH(cross_entropy(x, targets({0, 1, -2})), Catch::Contains("target -2 of row 2"));
  CHECK_THROWS_WITH(cross_entropy(x, targets({0, 1})), Catch::Contains("i32 [2] for 3 rows"));
  CHECK_THROWS_WITH(cross_entropy(x, Tensor::zeros(rt, {3})), Catch::Contains("f32"));
  CHECK_THROWS_WITH(
      cross_entropy(x, Tensor::from<int64_t>(rt, {3}, Ints{0, 1, (int64_t{1} << 32) + 1})),
      Catch::Contains("target 4294967297 of row 2"));
  CHECK_THROWS_WITH(cross_entropy(x, targets({0, 1, 2}), {.ignore_index = int64_t{1} << 40}),
                    Catch::Contains("ignore_index must fit"));
}

}  // namespace
}  // namespace sherd::test
