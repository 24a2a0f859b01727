#include "autograd/ops/arithmetic.h"

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

struct Binary {
  const char* name;
  Variable (*op)(const Variable&, const Variable&);
  double (*f)(double, double);
};

const Binary kBinaries[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"sub", sub, [](double a, double b) { return a - b; }},
    {"mul", mul, [](double a, double b) { return a * b; }},
    {"div", div, [](double a, double b) { return a / b; }},
};

/// Row-major values of x [shape], broadcast to `to`.
std::vector<double> broadcast_values(const std::vector<double>& x, const Shape& shape,
                                     const Shape& to) {
  const auto rt = Runtime::create();
  return Tensor::from<double>(rt, shape, x).expand(to).to_vector<double>();
}

void run_binary(const Binary& b, const Shape& left, const Shape& right,
                std::vector<DType> dtypes = {DType::f32, DType::bf16}) {
  INFO(left << " and " << right);
  const auto oracle = [&](const CaseValues& in) {
    const Shape to = broadcast(left, right);
    const auto x = broadcast_values(in[0], left, to);
    const auto y = broadcast_values(in[1], right, to);
    std::vector<double> out;
    for (size_t i = 0; i < x.size(); ++i) out.push_back(b.f(x[i], y[i]));
    return out;
  };
  run({.name = b.name,
       .inputs = {{.shape = left}, {.shape = right, .low = 0.5, .high = 2}},
       .op = [&](const std::vector<Variable>& in) { return b.op(in[0], in[1]); },
       .oracle = oracle,
       .dtypes = std::move(dtypes),
       .f32 = {1e-6, 1e-6},
       .half = {1e-2, 4e-2}});
}

TEST_CASE("arithmetic with every kind of broadcasting") {
  for (const Binary& b : kBinaries) {
    run_binary(b, {3, 5, 17}, {3, 5, 17}, {DType::f32, DType::bf16, DType::f16});
    run_binary(b, {7, 37}, {37});        // a bias
    run_binary(b, {37}, {7, 37});        // the other way
    run_binary(b, {3, 5, 19}, {5, 19});  // positions
    run_binary(b, {6, 33}, {});          // a scalar
    run_binary(b, {}, {6, 3});
    run_binary(b, {5, 19}, {5, 1});    // a column
    run_binary(b, {3, 1, 7}, {5, 1});  // both
    run_binary(b, {2, 1, 3, 1, 5}, {4, 1, 2, 1});
  }
}

TEST_CASE("arithmetic of scalars, of nothing, and over several blocks") {
  for (const Binary& b : kBinaries) {
    run_binary(b, {}, {});
    run_binary(b, {1}, {1, 1});
    run_binary(b, {0, 3}, {3}, {DType::f32});
  }
  for (const Shape& right : {Shape{130, 257}, Shape{257}, Shape{130, 1}})
    run({.name = "mul",
         .inputs = {{.shape = {130, 257}}, {.shape = right}},
         .op = [](const std::vector<Variable>& in) { return mul(in[0], in[1]); },
         .dtypes = {DType::f32},
         .f32 = {1e-5, 1e-5},
         .gradcheck = {.relative = 1e-5, .directions = 1}});
}

TEST_CASE("one variable on both sides, and sides without gradient") {
  for (const Binary& b : kBinaries) {
    run({.name = b.name,
         .inputs = {{.shape = {3, 7}, .low = 0.5}},
         .op = [&](const std::vector<Variable>& in) { return b.op(in[0], in[0]); },
         .f32 = {1e-6, 2e-6}});
    run({.name = b.name,
         .inputs = {{.shape = {3, 7}, .gradient = false}, {.shape = {7}, .low = 0.5}},
         .op = [&](const std::vector<Variable>& in) { return b.op(in[0], in[1]); },
         .f32 = {1e-6, 2e-6},
         .half = {1e-2, 4e-2}});
    run({.name = b.name,
         .inputs = {{.shape = {3, 7}}, {.shape = {7}, .low = 0.5, .gradient = false}},
         .op = [&](const std::vector<Variable>& in) { return b.op(in[0], in[1]); }});
  }
}

TEST_CASE("scale and neg") {
  for (const Shape& shape : {Shape{}, Shape{3, 5, 17}, Shape{0}}) {
    const auto times = [](double by) {
      return [by](const CaseValues& in) {
        std::vector<double> out;
        for (const double x : in[0]) out.push_back(by * x);
        return out;
      };
    };
    run({.name = "scale",
         .inputs = {{.shape = shape}},
         .op = [](const std::vector<Variable>& in) { return scale(in[0], 0.37); },
         .oracle = times(0.37),
         .dtypes = {DType::f32, DType::bf16, DType::f16}});
    run({.name = "neg",
         .inputs = {{.shape = shape}},
         .op = [](const std::vector<Variable>& in) { return neg(in[0]); },
         .oracle = times(-1)});
  }
}

TEST_CASE("arithmetic agrees with PyTorch") {
  for (const Binary& b : kBinaries)
    for (const char* kind : {"same", "row", "both", "scalar"})
      check_golden(std::string(b.name) + "_" + kind, {"a", "b"},
                   [&](const std::vector<Variable>& in) { return b.op(in[0], in[1]); },
                   {1e-6, 1e-6});
}

TEST_CASE("a parameter that was broadcast gets its gradient in f32") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::full(rt, {300, 3}, 1, DType::bf16));
  const Variable bias = tape.leaf(Tensor::full(rt, {3}, 1, DType::bf16), "bias");
  tape.backward(add(x, bias), Tensor::full(rt, {300, 3}, 1.0078125, DType::bf16));
  CHECK(bias.grad().dtype() == DType::f32);
  CHECK(bias.grad().to_vector<double>()[0] == 300 * 1.0078125);  // needs 16 bits
  CHECK(x.grad().dtype() == DType::bf16);
}

TEST_CASE("arithmetic refuses other shapes and mixed dtypes") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable a = tape.leaf(Tensor::full(rt, {2, 3}, 1));
  const Variable b = tape.leaf(Tensor::full(rt, {4}, 1));
  const Variable h = tape.leaf(Tensor::full(rt, {3}, 1, DType::bf16));
  const Variable i = tape.constant(Tensor::full(rt, {3}, 1, DType::i32));
  CHECK_THROWS_WITH(add(a, b), Catch::Contains("add") && Catch::Contains("[2, 3] and [4]"));
  CHECK_THROWS_WITH(mul(a, h), Catch::Contains("mul") && Catch::Contains("bf16 [3]"));
  CHECK_THROWS_WITH(sub(i, i), Catch::Contains("sub") && Catch::Contains("i32"));
}

}  // namespace
}  // namespace sherd::test
