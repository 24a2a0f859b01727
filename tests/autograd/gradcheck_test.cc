#include "autograd/gradcheck.h"

#include <cmath>

#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

/// sin(x) · factor, with a backward that is off by `error` at one element.
Variable wave(const Variable& x, double error, size_t at) {
  const auto v = x.value().to_vector<double>();
  std::vector<double> y(v.size());
  for (size_t i = 0; i < v.size(); ++i) y[i] = std::sin(v[i]);
  const auto backward = [v, error, at, shape = x.shape(), rt = x.runtime()](const Tensor& dy) {
    auto dx = dy.to_vector<double>();
    for (size_t i = 0; i < dx.size(); ++i) dx[i] *= std::cos(v[i]) + (i == at ? error : 0);
    return Grads{Tensor::from<double>(rt, shape, dx)};
  };
  return x.tape().record("wave", Tensor::from<double>(x.runtime(), x.shape(), y), {x}, backward);
}

TEST_CASE("gradcheck accepts a right backward and points at a wrong element") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  for (const int64_t n :
       {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{1000}}) {  // 1000: by direction
    const Tensor x = uniform(rt, {n}, 1, -2, 2, DType::f64);
    const auto right = [](const std::vector<Variable>& in) { return wave(in[0], 0, 0); };
    const auto wrong = [](const std::vector<Variable>& in) { return wave(in[0], 1e-4, 5); };
    const GradcheckReport good = gradcheck(tape, right, {x});
    INFO(good.text);
    CHECK(good.ok);
    if (n < 7) continue;
    const GradcheckReport bad = gradcheck(tape, wrong, {x});
    CHECK_FALSE(bad.ok);
    if (n == 7) CHECK_THAT(bad.text, Catch::Contains("input 0 f64 [7], element 5"));
  }
  CHECK(tape.recorded() == 0);
}

TEST_CASE("gradcheck finds a gradient that is missing, and refuses other dtypes") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Tensor x = uniform(rt, {3}, 1, -2, 2, DType::f64);
  const auto second_missing = [](const std::vector<Variable>& in) {
    const auto a = in[0].value().to_vector<double>();
    const auto b = in[1].value().to_vector<double>();
    std::vector<double> y(a.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = a[i] + b[i];
    return in[0].tape().record("half_add", Tensor::from<double>(in[0].runtime(), {3}, y), in,
                               [](const Tensor& dy) -> Grads {
                                 return {dy, {}};
                               });
  };
  const GradcheckReport report = gradcheck(tape, second_missing, {x, x});
  CHECK_FALSE(report.ok);
  CHECK_THAT(report.text, Catch::Contains("input 1"));
  CHECK_THROWS_WITH(gradcheck(tape, second_missing, {x.to(DType::f32), x}), Catch::Contains("f32"));
}

TEST_CASE("near tells the first bad index and the worst error") {
  CHECK(near({1, 2}, {1, 2.0000001}, {1e-6, 0}));
  const Comparison c = near({1, 2.5, 9}, {1, 2, 3}, {0.1, 0});
  CHECK_FALSE(c);
  CHECK_THAT(c.trouble,
             Catch::Contains("first at element 1") && Catch::Contains("worst at element 2"));
  const double inf = HUGE_VAL;
  CHECK(near({inf, -inf, std::nan("")}, {inf, -inf, std::nan("")}, {}));
  CHECK_FALSE(near({inf}, {1}, {1, 1}));
  CHECK_FALSE(near({std::nan("")}, {1}, {1, 1}));
  CHECK_FALSE(near({1}, {1, 1}, {}));
  CHECK_FALSE(same_bits({0.0}, {-0.0}));
  CHECK(same_bits({1.5}, {1.5}));
}

}  // namespace
}  // namespace sherd::test
