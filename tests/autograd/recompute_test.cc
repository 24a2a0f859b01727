#include "autograd/recompute.h"

#include "tests/autograd/toy_ops.h"
#include "tests/support/near.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

using Floats = std::vector<float>;

/// A chain of blocks h = ((h · w) · h) · w, each plain or recomputed; the gradients and the peak.
struct Result {
  Floats dx;
  std::vector<Floats> dw;
  int64_t peak = 0;
  float loss = 0;
};

Result train(int blocks, int weights, bool again) {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const int64_t n = 4096;
  std::vector<Variable> ws;
  for (int i = 0; i < weights; ++i)
    ws.push_back(
        tape.leaf(uniform(rt, {n}, static_cast<uint64_t>(i), 0.5, 1.5), "w" + std::to_string(i)));
  const Variable x = tape.leaf(uniform(rt, {n}, 7, 0.8, 1.2));
  rt->allocator().reset_peak();
  Result result;
  {
    Variable h = x;
    for (int b = 0; b < blocks; ++b) {
      const Variable& w = ws[static_cast<size_t>(b % weights)];
      const auto block = [w](const std::vector<Variable>& in) {
        const Variable u = toy_mul(in[0], w);
        return toy_mul(toy_mul(toy_mul(u, u), u), w);
      };
      h = again ? recompute("block", {h}, block) : block({h});
    }
    const Variable loss = toy_sum(h);
    result.loss = static_cast<float>(loss.value().item());
    h = {};
    tape.backward(loss);
  }
  result.peak = rt->allocator().peak().bytes;
  result.dx = x.grad().to_vector<float>();
  for (const auto& w : ws) {
    result.dw.push_back(w.grad().to_vector<float>());
    CHECK(w.state().pending_uses == 0);
  }
  return result;
}

TEST_CASE("recompute equals the plain run bit for bit, and holds less") {
  for (const int weights : {3, 1}) {  // 1: each block uses the same parameter
    const Result plain = train(3, weights, false);
    const Result again = train(3, weights, true);
    CHECK(again.loss == plain.loss);
    CHECK(again.dx == plain.dx);
    CHECK(again.dw == plain.dw);
  }
  const Result plain = train(8, 8, false);
  const Result again = train(8, 8, true);
  CHECK(again.dw == plain.dw);
  CHECK(again.peak < plain.peak * 3 / 4);
}

TEST_CASE("recompute of constants by parameters alone is recorded for the parameters") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable w = tape.leaf(Tensor::full(rt, {2}, 3), "w");
  const Variable c = tape.constant(Tensor::full(rt, {2}, 5));
  const Variable y =
      recompute("r", {c}, [w](const std::vector<Variable>& in) { return toy_mul(in[0], w); });
  REQUIRE(y.requires_grad());
  tape.backward(toy_sum(y));
  CHECK(w.grad().to_vector<float>() == Floats{5, 5});
  CHECK_FALSE(c.grad());
}

TEST_CASE("recompute inside recompute, several inputs, and one input twice") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable a = tape.leaf(Tensor::full(rt, {1}, 2), "a");
  const Variable b = tape.leaf(Tensor::full(rt, {1}, 3), "b");
  const Variable y = recompute("outer", {a, b, a}, [b](const std::vector<Variable>& in) {
    const Variable inner = recompute("inner", {in[0]}, [b](const std::vector<Variable>& x) {
      return toy_mul(toy_mul(x[0], x[0]), b);
    });
    return toy_add(toy_mul(inner, in[1]), in[2]);  // a²b·b + a
  });
  CHECK(y.value().item() == 38);
  tape.backward(toy_sum(y));
  CHECK(a.grad().item() == 37);  // 2ab² + 1
  CHECK(b.grad().item() == 24);  // 2a²b
  CHECK(a.state().pending_uses == 0);
  CHECK(b.state().pending_uses == 0);
}

TEST_CASE("recompute under NoGrad records nothing; clear resets its uses") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable w = tape.leaf(Tensor::full(rt, {1}, 2), "w");
  const auto block = [w](const std::vector<Variable>& in) { return toy_mul(in[0], w); };
  {
    const NoGrad no_grad(tape);
    CHECK_FALSE(recompute("r", {w}, block).requires_grad());
  }
  CHECK(w.state().pending_uses == 0);
  recompute("r", {w}, block);
  CHECK(w.state().pending_uses > 0);
  tape.clear();
  CHECK(w.state().pending_uses == 0);
  tape.backward(toy_sum(recompute("r", {w}, block)));
  CHECK(w.grad().item() == 4);
  CHECK_THROWS_WITH(recompute("r", {}, block), Catch::Contains("at least one input"));
}

TEST_CASE("a recomputed function that throws leaves no use behind") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable w = tape.leaf(Tensor::full(rt, {1}, 2), "w");
  const auto bad = [w](const std::vector<Variable>& in) -> Variable {
    toy_mul(in[0], w);
    fail("out of luck");
  };
  CHECK_THROWS_WITH(recompute("r", {w}, bad), Catch::Contains("out of luck"));
  CHECK(w.state().pending_uses == 0);
  tape.backward(toy_sum(toy_mul(w, w)));
  REQUIRE(w.grad());
  CHECK(w.grad().item() == 4);
}

TEST_CASE("a recomputed function may return an input, but nothing else that it did not compute") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable w = tape.leaf(Tensor::full(rt, {1}, 2), "w");
  const Variable other = tape.leaf(Tensor::full(rt, {1}, 3), "other");
  const auto second = [](const std::vector<Variable>& in) {
    toy_mul(in[1], in[0]);  // recorded again in backward, and of no use
    return in[1];
  };
  tape.backward(toy_sum(recompute("r", {other, w}, second)));
  REQUIRE(w.grad());
  CHECK(w.grad().item() == 1);
  CHECK_FALSE(other.grad());
  CHECK_THROWS_WITH(recompute("r", {w}, [&](const std::vector<Variable>&) { return other; }),
                    Catch::Contains("must compute its result"));
}

TEST_CASE("marks inside a recomputed function fire each time it is passed") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  std::string order;
  const Variable w = tape.leaf(Tensor::full(rt, {1}, 2), "w");
  const Variable y = recompute("r", {w}, [&](const std::vector<Variable>& in) {
    order += 'f';
    in[0].tape().mark([&] { order += 'm'; });
    return toy_mul(in[0], w);
  });
  tape.backward(toy_sum(y));
  CHECK(order == "ffm");
}

}  // namespace
}  // namespace sherd::test
