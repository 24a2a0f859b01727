#include "autograd/ops/elementwise.h"

#include <cmath>

#include "autograd/ops/elementwise_kernels.h"
#include "tensor/kernels/launch.h"
#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

struct Unary {
  const char* name;
  Variable (*op)(const Variable&);
  double (*f)(double);
  double low = -6;
  double high = 6;
};

template <Activation A>
Variable act(const Variable& x) {
  return activate(x, A);
}

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

const Unary kUnaries[] = {
    {"relu", act<Activation::relu>, [](double x) { return x > 0 ? x : 0; }},
    {"gelu_tanh", act<Activation::gelu_tanh>,
     [](double x) {
       return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     }},
    {"gelu_erf", act<Activation::gelu_erf>,
     [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2)); }},
    {"silu", act<Activation::silu>, [](double x) { return x * sigma(x); }},
    {"sigmoid", act<Activation::sigmoid>, sigma},
    {"tanh", act<Activation::tanh>, [](double x) { return std::tanh(x); }},
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"log", log, [](double x) { return std::log(x); }, 0.1, 9},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.1, 9},
    {"square", square, [](double x) { return x * x; }},
};

TEST_CASE("elementwise ops: oracle, gradients, every instruction set, threads, views, meta") {
  for (const Unary& u : kUnaries) {
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1}, Shape{3, 5, 17}, Shape{16}}) {
      const auto oracle = [&](const CaseValues& in) {
        std::vector<double> y;
        for (const double x : in[0]) y.push_back(u.f(x));
        return y;
      };
      INFO(shape);
      run({.name = u.name,
           .inputs = {{.shape = shape, .low = u.low, .high = u.high}},
           .op = [&](const std::vector<Variable>& in) { return u.op(in[0]); },
           .oracle = oracle,
           .dtypes = {DType::f32, DType::bf16, DType::f16},
           .f32 = {1e-6, 5e-7},
           .half = {1e-2, 1e-3}});
    }
  }
}

TEST_CASE("elementwise ops over more than one block") {
  for (const Unary& u : {kUnaries[1], kUnaries[2]})
    run({.name = u.name,
         .inputs = {{.shape = {3, 16384 + 5}}},
         .op = [&](const std::vector<Variable>& in) { return u.op(in[0]); },
         .dtypes = {DType::f32},
         .f32 = {1e-6, 5e-7},
         .gradcheck = {.relative = 1e-6, .directions = 1}});
}

TEST_CASE("elementwise ops agree with PyTorch") {
  for (const Unary& u : kUnaries) {
    const std::string name = u.name;
    if (name == "log" || name == "sqrt" || name == "square") continue;
    const auto op = [&](const std::vector<Variable>& in) { return u.op(in[0]); };
    check_golden(name, {"x"}, op, {1e-6, 3e-7});
    check_golden(name, {"x"}, op, {1e-14, 1e-15}, DType::f64);
  }
}

TEST_CASE("none is the variable itself, and other dtypes are refused") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::full(rt, {2}, 3));
  CHECK(activate(x, Activation::none) == x);
  CHECK(tape.recorded() == 0);
  const Variable i = tape.constant(Tensor::zeros(rt, {2}, DType::i32));
  CHECK_THROWS_WITH(exp(i), Catch::Contains("exp") && Catch::Contains("i32"));
}

TEST_CASE("large, infinite and NaN inputs give what the formulas tend to") {
  const float inf = HUGE_VALF;
  for (const Isa isa : all_isas()) {
    const auto rt = Runtime::create({.isa = isa});
    const Tensor x = Tensor::from<float>(
        rt, {6}, std::vector<float>{-1e30f, -100, 100, 1e18f, inf, std::nanf("")});
    const auto run_row = [&](Variable (*op)(const Variable&)) {
      Tape tape(rt);
      const Variable v = tape.leaf(x);
      const Variable y = op(v);
      tape.backward(y, Tensor::full(rt, {6}, 1));
      auto out = y.value().to_vector<double>();
      const auto grad = v.grad().to_vector<double>();
      out.insert(out.end(), grad.begin(), grad.begin() + 4);
      return out;
    };
    const double nan = std::nan("");
    const double big = 1e18f;
    INFO(name_of(isa));
    CHECK(near(run_row(act<Activation::relu>), {0, 0, 100, big, inf, nan, 0, 0, 1, 1}, {}));
    CHECK(near(run_row(act<Activation::gelu_tanh>), {0, 0, 100, big, inf, nan, 0, 0, 1, 1}, {}));
    CHECK(near(run_row(act<Activation::gelu_erf>), {0, 0, 100, big, inf, nan, 0, 0, 1, 1}, {}));
    CHECK(near(run_row(act<Activation::silu>), {0, 0, 100, big, inf, nan, 0, 0, 1, 1}, {0, 1e-35}));
    CHECK(near(run_row(act<Activation::sigmoid>), {0, 0, 1, 1, 1, nan, 0, 0, 0, 0}, {0, 1e-35}));
    CHECK(near(run_row(act<Activation::tanh>), {-1, -1, 1, 1, 1, nan, 0, 0, 0, 0}, {}));
  }
}

TEST_CASE("the fused backward writes both the value and the gradient, in place too") {
  for (const Isa isa : all_isas()) {
    const auto rt = Runtime::create({.isa = isa});
    for (const int64_t n : {1, 16, 37}) {
      const Tensor x = uniform(rt, {n}, 1, -4, 4);
      const Tensor dy = uniform(rt, {n}, 2);
      const Tensor y = Tensor::empty_like(x);
      const Tensor want_y = Tensor::empty_like(x);
      const Tensor want_dx = Tensor::empty_like(x);
      for (int a = 0; a <= static_cast<int>(Activation::tanh); ++a) {
        const auto f = static_cast<Activation>(a);
        INFO(name_of(f));
        const float* px = x.data<float>();
        launch(*rt, kernels::ActivationForward<float>{px, want_y.data<float>(), f}, n, 16);
        launch(*rt,
               kernels::ActivationBackward<float>{px, dy.data<float>(), want_dx.data<float>(), f},
               n, 16);
        const Tensor dx = dy.clone();
        launch(*rt,
               kernels::ActivationBackwardFused<float>{px, dx.data<float>(), dx.data<float>(),
                                                       y.data<float>(), f},
               n, 16);
        CHECK(same_bits(y.to_vector<double>(), want_y.to_vector<double>()));
        CHECK(same_bits(dx.to_vector<double>(), want_dx.to_vector<double>()));
      }
    }
  }
}

}  // namespace
}  // namespace sherd::test
