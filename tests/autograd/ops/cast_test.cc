#include "autograd/ops/cast.h"

#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

TEST_CASE("cast rounds forward and gives the gradient in the dtype it came in") {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 5, 17}}) {
    run({.name = "between f64 and the rest",
         .inputs = {{.shape = shape}},
         .op =
             [](const std::vector<Variable>& in) {
               return cast(in[0], in[0].dtype() == DType::f64 ? DType::f32 : DType::f64);
             },
         .oracle = [](const CaseValues& in) { return in[0]; },
         .dtypes = {DType::f32, DType::bf16, DType::f16},
         .f64 = {1e-7, 0},
         .f32 = {1e-7, 0},
         .half = {4e-3, 1e-7},
         .differentiable = false});
    run({.name = "to bf16 and back",
         .inputs = {{.shape = shape}},
         .op =
             [](const std::vector<Variable>& in) {
               return cast(cast(in[0], DType::bf16), in[0].dtype());
             },
         .dtypes = {DType::f32},
         .f32 = {1e-7, 0},
         .differentiable = false});
  }
}

TEST_CASE("cast to the same dtype is the variable itself; integers are refused") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(Tensor::full(rt, {2}, 1.00390625));
  CHECK(cast(x, DType::f32) == x);
  const Variable h = cast(x, DType::bf16);
  CHECK(h.value().to_vector<float>() == std::vector<float>{1, 1});
  tape.backward(h, Tensor::full(rt, {2}, 3, DType::bf16));
  CHECK(x.grad().dtype() == DType::f32);
  CHECK(x.grad().to_vector<float>() == std::vector<float>{3, 3});
  CHECK_THROWS_WITH(cast(x, DType::i32), Catch::Contains("cast") && Catch::Contains("i32"));
}

}  // namespace
}  // namespace sherd::test
