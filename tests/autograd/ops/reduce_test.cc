#include "autograd/ops/reduce.h"

#include <cmath>
#include <limits>

#include "tensor/kernels/reduce.h"
#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

using Dims = std::vector<int>;

/// A loop over every element: joins x[i] into the output element that it belongs to.
std::vector<double> reduced(const std::vector<double>& x, const Shape& shape, const Shape& kept,
                            double start, double (*join)(double, double)) {
  std::vector<double> y(static_cast<size_t>(kept.numel()), start);
  const Strides from = shape.contiguous_strides();
  const Strides to = kept.contiguous_strides();
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t at = 0;
    for (int d = 0; d < shape.size(); ++d)
      if (kept[d] != 1) at += static_cast<int64_t>(i) / from[d] % shape[d] * to[d];
    y[static_cast<size_t>(at)] = join(y[static_cast<size_t>(at)], x[i]);
  }
  return y;
}

struct Case {
  Shape shape;
  Dims dims;
};

const Case kCases[] = {
    {{3, 5, 17}, {}},     {{3, 5, 17}, {2}},
    {{3, 5, 17}, {-2}},   {{3, 5, 17}, {0}},
    {{3, 5, 17}, {0, 2}}, {{3, 5, 17}, {1, 2}},
    {{3, 5, 17}, {1, 0}}, {{2, 3, 4, 5}, {1, 3}},
    {{1}, {0}},           {{}, {}},
    {{4, 1, 3}, {1}},     {{70}, {0}},
    {{5, 300}, {0}},      {{2, 3, 70}, {0, 1}},
};

TEST_CASE("sum and mean over any dims") {
  for (const Case& c : kCases) {
    INFO(c.shape << " over " << Catch::StringMaker<Dims>::convert(c.dims));
    const Shape kept = kept_shape(c.shape, c.dims);
    const double count = static_cast<double>(c.shape.numel()) / static_cast<double>(kept.numel());
    const auto add = [](double a, double b) { return a + b; };
    run({.name = "sum",
         .inputs = {{.shape = c.shape}},
         .op = [&](const std::vector<Variable>& in) { return sum(in[0], c.dims); },
         .oracle = [&](const CaseValues& in) { return reduced(in[0], c.shape, kept, 0, add); },
         .f64 = {1e-12, 1e-12},
         .f32 = {1e-6, 5e-6},
         .half = {1e-2, 2e-2}});
    run({.name = "mean",
         .inputs = {{.shape = c.shape}},
         .op = [&](const std::vector<Variable>& in) { return mean(in[0], c.dims, Keep::yes); },
         .oracle =
             [&](const CaseValues& in) {
               auto y = reduced(in[0], c.shape, kept, 0, add);
               for (double& v : y) v /= count;
               return y;
             },
         .dtypes = {DType::f32, DType::bf16, DType::f16},
         .f32 = {1e-6, 1e-6},
         .half = {1e-2, 1e-2}});
  }
}

TEST_CASE("max over any dims") {
  for (const Case& c : kCases) {
    INFO(c.shape << " over " << Catch::StringMaker<Dims>::convert(c.dims));
    const Shape kept = kept_shape(c.shape, c.dims);
    run({.name = "max",
         .inputs = {{.shape = c.shape}},
         .op = [&](const std::vector<Variable>& in) { return max(in[0], c.dims); },
         .oracle =
             [&](const CaseValues& in) {
               return reduced(in[0], c.shape, kept, -HUGE_VAL,
                              [](double a, double b) { return a > b ? a : b; });
             },
         .dtypes = {DType::f32, DType::bf16, DType::f16},
         // bf16 has ties that f64 run on the same values has too.
         .f32 = {1e-6, 0},
         .half = {1e-2, 1e-2},
         .gradcheck = {.step = 1e-7, .relative = 1e-6}});
  }
}

TEST_CASE("reductions agree with PyTorch") {
  for (const auto& [suffix, dims, keep] : {std::tuple<const char*, Dims, Keep>{"2", {2}, Keep::no},
                                           {"1", {1}, Keep::no},
                                           {"1_keep", {1}, Keep::yes},
                                           {"02", {0, 2}, Keep::no},
                                           {"012", {0, 1, 2}, Keep::no}}) {
    const std::string name = suffix;
    const auto golden = [&](const char* op, auto function) {
      check_golden(std::string(op) + "_dims" + name, {"x"},
                   [&, dims = dims, keep = keep](const std::vector<Variable>& in) {
                     return function(in[0], dims, keep);
                   },
                   {1e-6, 2e-6});
    };
    golden("sum", [](const Variable& x, const Dims& d, Keep k) { return sum(x, d, k); });
    golden("mean", [](const Variable& x, const Dims& d, Keep k) { return mean(x, d, k); });
    golden("max", [](const Variable& x, const Dims& d, Keep k) { return max(x, d, k); });
  }
}

TEST_CASE("long sums keep their digits: lines and columns in chunks") {
  for (const Isa isa : all_isas()) {
    INFO(name_of(isa));
    const auto rt = Runtime::create({.threads = 2, .isa = isa});
    // 1/3 added a million times one by one in f32 would be off by 3e-3 of itself.
    const Tensor line = Tensor::full(rt, {1000003}, 1.0 / 3);
    CHECK(reduce_sum(line, {1}).item() ==
          Approx(1000003 * static_cast<double>(1.0f / 3)).epsilon(3e-6));
    const Tensor tall = Tensor::full(rt, {100003, 5}, 1.0 / 3);
    for (const double y : reduce_sum(tall, {1, 5}).to_vector<double>())
      CHECK(y == Approx(100003 * static_cast<double>(1.0f / 3)).epsilon(3e-5));
    const auto one = Runtime::create({.threads = 1, .isa = isa});
    const Tensor again = uniform(one, {5000, 21}, 3);
    const Tensor same = uniform(rt, {5000, 21}, 3);
    CHECK(reduce_sum(again, {1, 21}).to_vector<float>() ==
          reduce_sum(same, {1, 21}).to_vector<float>());
    CHECK(reduce_sum(again, {1, 1}).item() == reduce_sum(same, {1, 1}).item());
  }
}

TEST_CASE("max shares its gradient among ties, and finds NaN wherever it is") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x =
      tape.leaf(Tensor::from<float>(rt, {2, 3}, std::vector<float>{1, 2, 2, 5, 5, 5}));
  tape.backward(max(x, 1), Tensor::full(rt, {2}, 6));
  CHECK(x.grad().to_vector<float>() == std::vector<float>{0, 3, 3, 2, 2, 2});
  const float inf = HUGE_VALF;
  for (const Isa isa : all_isas()) {
    const auto at = Runtime::create({.isa = isa});
    for (int64_t where = 0; where < 100; where += 7) {
      Tensor t = Tensor::full(at, {100}, 1);
      t.data<float>()[where] = std::nanf("");
      CHECK(std::isnan(reduce_max(t, {1}).item()));
      t.data<float>()[where] = inf;
      CHECK(reduce_max(t, {1}).item() == HUGE_VAL);
      t.fill(-inf);
      CHECK(reduce_max(t, {1}).item() == -HUGE_VAL);
    }
  }
}

TEST_CASE("reductions of nothing, and misuse") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable none = tape.leaf(Tensor::zeros(rt, {0, 3}));
  CHECK(sum(none).value().item() == 0);
  CHECK(sum(none, {0}).value().to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK(sum(none, {1}).shape() == Shape{0});
  CHECK(std::isnan(mean(none).value().item()));
  CHECK_THROWS_WITH(max(none, 0), Catch::Contains("max") && Catch::Contains("no elements"));
  CHECK(max(none, 1).shape() == Shape{0});
  const Variable x = tape.leaf(Tensor::zeros(rt, {2, 3}));
  CHECK_THROWS_WITH(sum(x, {2}), Catch::Contains("out of range"));
  CHECK_THROWS_WITH(sum(x, {1, -1}), Catch::Contains("twice"));
  CHECK_THROWS_WITH(sum(tape.constant(Tensor::zeros(rt, {2}, DType::i32))), Catch::Contains("i32"));
  CHECK(sum_to(x.value(), {2, 3}).data<float>() == x.value().data<float>());
  CHECK_THROWS_WITH(sum_to(x.value(), {4}), Catch::Contains("[4]"));
}

}  // namespace
}  // namespace sherd::test
