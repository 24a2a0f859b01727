#include "autograd/ops/embedding.h"

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

using Ints = std::vector<int64_t>;

OpCase case_of(const char* name, const Shape& table, const Shape& shape, Ints indices,
               DType dtype = DType::i32) {
  const auto columns = static_cast<size_t>(table[1]);
  return {
      .name = name,
      .inputs = {{.shape = table}, {.shape = shape, .dtype = dtype, .values = std::move(indices)}},
      .op = [](const auto& in) { return embedding(in[0], in[1].value()); },
      .oracle =
          [=](const CaseValues& in) {
            std::vector<double> y;
            for (const double i : in[1])
              for (size_t c = 0; c < columns; ++c)
                y.push_back(in[0][static_cast<size_t>(i) * columns + c]);
            return y;
          },
      .dtypes = {DType::f32, DType::bf16, DType::f16}};
}

TEST_CASE("embedding over odd shapes") {
  run(case_of("repeated and unused rows", {7, 21}, {2, 3}, {6, 0, 6, 3, 6, 1}));
  run(case_of("i64, more than one block of columns", {5, 133}, {4}, {4, 4, 0, 4}, DType::i64));
  Ints many;
  for (int64_t i = 0; i < 40; ++i) many.push_back(i * i % 5);
  run(case_of("rows for more than one thread", {5, 1061}, {8, 5}, many));
  run(case_of("one row, one column", {1, 1}, {1}, {0}));
  run(case_of("a scalar index", {3, 5}, {}, {2}));
  run(case_of("no columns", {3, 0}, {2}, {2, 0}));
}

TEST_CASE("embedding of no indices is empty, and its gradient zero") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable table = tape.leaf(uniform(rt, {3, 5}, 1), "table");
  const Variable y = embedding(table, Tensor::zeros(rt, {0, 2}, DType::i32));
  CHECK(y.shape() == Shape{0, 2, 5});
  tape.backward(y, Tensor::zeros(rt, {0, 2, 5}));
  CHECK(table.grad().to_vector<double>() == std::vector<double>(15, 0));
}

TEST_CASE("rows used often are added in f32 whatever the table's dtype") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto rt = Runtime::create({.threads = 2});
    Tape tape(rt);
    const Variable table = tape.leaf(Tensor::zeros(rt, {2, 3}, dtype), "table");
    const Variable y = embedding(table, Tensor::full(rt, {3001}, 1, DType::i32));
    tape.backward(y, Tensor::full(rt, {3001, 3}, 1, dtype));
    CHECK(table.grad().dtype() == DType::f32);
    CHECK(table.grad().to_vector<double>() == std::vector<double>{0, 0, 0, 3001, 3001, 3001});
  }
}

TEST_CASE("embedding adds to a gradient that another use of the table has begun") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable table = tape.leaf(uniform(rt, {2, 2}, 1), "table");
  const Variable a = embedding(table, Tensor::zeros(rt, {1}, DType::i32));
  const Variable b = embedding(table, Tensor::full(rt, {2}, 1, DType::i64));
  const std::vector<Variable> both = {a, b};
  const Variable sum = tape.record("sum", Tensor::zeros(rt, {}), both, [&](const Tensor&) -> Grads {
    return {Tensor::full(rt, {1, 2}, 3), Tensor::full(rt, {2, 2}, 5)};
  });
  tape.backward(sum);
  CHECK(table.grad().to_vector<double>() == std::vector<double>{3, 3, 10, 10});
}

TEST_CASE("embedding takes indices and gradients of any strides") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable table = tape.leaf(uniform(rt, {4, 3}, 1));
  const Tensor indices = Tensor::from<int32_t>(rt, {2, 2}, std::vector<int32_t>{0, 1, 2, 3});
  const Variable y = embedding(table, indices.transpose(0, 1));
  const auto rows = table.value().to_vector<double>();
  CHECK(y.value().to_vector<double>() == std::vector<double>{rows[0], rows[1], rows[2], rows[6],
                                                             rows[7], rows[8], rows[3], rows[4],
                                                             rows[5], rows[9], rows[10], rows[11]});
  const Tensor seed = Tensor::from<float>(rt, {3}, std::vector<float>{1, 2, 3});
  tape.backward(y, seed.expand({2, 2, 3}));
  CHECK(table.grad().to_vector<double>() ==
        std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3});
}

TEST_CASE("embedding agrees with PyTorch") {
  const auto op = [](const auto& in) { return embedding(in[0], in[1].value()); };
  check_golden("embedding", {"weight", "indices"}, op, {1e-6, 1e-6});
  check_golden("embedding", {"weight", "indices"}, op, {1e-14, 1e-14}, DType::f64);
}

TEST_CASE("embedding names an index that is out of range") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable table = tape.leaf(Tensor::zeros(rt, {5, 2}));
  const auto at = [&](const std::vector<int64_t>& i) {
    return Tensor::from<int64_t>(rt, {2, 2}, i);
  };
  CHECK_THROWS_WITH(embedding(table, at({0, 4, 5, 1})),
                    Catch::Contains("index 5 at position [1, 0] of a table of 5 rows"));
  CHECK_THROWS_WITH(embedding(table, at({0, -1, 5, 1})),
                    Catch::Contains("index -1 at position [0, 1]"));
  CHECK_THROWS_WITH(embedding(table, Tensor::zeros(rt, {2})), Catch::Contains("f32 [2]"));
  CHECK_THROWS_WITH(embedding(tape.leaf(Tensor::zeros(rt, {5})), at({0, 0, 0, 0})),
                    Catch::Contains("f32 [5]"));
}

}  // namespace
}  // namespace sherd::test
