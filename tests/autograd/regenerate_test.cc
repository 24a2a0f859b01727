#include "autograd/regenerate.h"

#include "tests/autograd/toy_ops.h"
#include "tests/support/near.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

constexpr int64_t kElements = 4096;

struct Result {
  std::vector<double> dx, dw;
  int64_t peak = 0;
  int64_t after_forward = 0;
  int made = 0;
};

/// blocks of h = (h · w) · (h · w), whose inner product is kept or made again.
Result train(int blocks, bool again) {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable w = tape.leaf(uniform(rt, {kElements}, 1, 0.5, 1.5), "w");
  const Variable x = tape.leaf(uniform(rt, {kElements}, 7, 0.8, 1.2));
  rt->allocator().reset_peak();
  Result result;
  Variable h = x;
  for (int b = 0; b < blocks; ++b) {
    const Variable u = toy_mul(h, w);
    const Variable y = toy_mul(u, u);
    if (again)
      regenerate(u, [h, w, &result] {
        ++result.made;
        return toy_mul(h, w);
      });
    h = y;
  }
  const Variable loss = toy_sum(h);
  h = {};
  result.after_forward = rt->allocator().live_bytes();
  tape.backward(loss);
  result.peak = rt->allocator().peak().bytes;
  result.dx = x.grad().to_vector<double>();
  result.dw = w.grad().to_vector<double>();
  return result;
}

TEST_CASE("what is made again has the bits of what was kept, once each, and less is held") {
  const Result kept = train(6, false), again = train(6, true);
  CHECK(same_bits(again.dx, kept.dx));
  CHECK(same_bits(again.dw, kept.dw));
  CHECK(again.made == 6);
  CHECK(kept.made == 0);
  CHECK(kept.after_forward - again.after_forward == 6 * 4 * kElements);
  CHECK(kept.peak - again.peak >= 4 * 4 * kElements);
}

TEST_CASE("a value may be made from one that is made again, too") {
  const auto rt = Runtime::create();
  std::vector<std::vector<double>> grads;
  for (const bool again : {false, true}) {
    Tape tape(rt);
    const Variable x = tape.leaf(uniform(rt, {kElements}, 3));
    const Variable u = toy_mul(x, x);
    const Variable v = toy_mul(u, u);
    const Variable loss = toy_sum(toy_mul(v, v));
    if (again) {
      regenerate(v, [u] { return toy_mul(u, u); });
      regenerate(u, [x] { return toy_mul(x, x); });
    }
    tape.backward(loss);
    grads.push_back(x.grad().to_vector<double>());
  }
  CHECK(same_bits(grads[0], grads[1]));
}

TEST_CASE("where nothing is recorded the bytes stay") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const NoGrad no_grad(tape);
  const Variable x = tape.leaf(uniform(rt, {kElements}, 3));
  const Variable u = toy_mul(x, x);
  regenerate(u, []() -> Variable { fail("not to be called"); });
  CHECK(u.value().storage()->resident());
}

TEST_CASE("a part of a storage, and another shape than before, are refused") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {kElements}, 3));
  const Variable u = toy_mul(x, x);
  Variable part = u;
  part.set_value(u.value());
  const Variable loss = toy_sum(toy_mul(u, u));
  regenerate(u, [&] { return tape.constant(Tensor::zeros(rt, {3})); });
  CHECK_THROWS_WITH(tape.backward(loss), Catch::Contains("made again") && Catch::Contains("[3]"));
}

}  // namespace
}  // namespace sherd::test
