#include "autograd/tape.h"

#include <cmath>

#include "tests/autograd/toy_ops.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

using Floats = std::vector<float>;
using Catch::Contains;

struct World {
  RuntimePtr rt = Runtime::create();
  Tape tape{rt};
  Tensor vec(const Floats& v) const {
    return Tensor::from<float>(rt, {static_cast<int64_t>(v.size())}, v);
  }
};

Floats grad(const Variable& v) { return v.grad().to_vector<float>(); }

TEST_CASE("a gradient is formed alone, then added to what earlier passes left") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1, 2}), "x");
  for (int pass = 1; pass <= 3; ++pass) {
    w.tape.backward(toy_sum(toy_mul(x, x)));
    const auto p = static_cast<float>(pass);
    CHECK(grad(x) == Floats{2 * p, 4 * p});
    CHECK(x.state().pending_uses == 0);
    CHECK(w.tape.recorded() == 0);
  }
  CHECK(x.grad().storage()->category() == Category::grads);
  x.set_grad({});
  w.tape.backward(toy_sum(x));
  CHECK(grad(x) == Floats{1, 1});
}

TEST_CASE("large sums do not swallow a pass: the addition order is per pass") {
  World w;
  // Formed alone: (1 + 1) = 2, then 2^24 + 2, which is exact. Added one by one, 2^24 + 1 is lost.
  const Variable x = w.tape.leaf(w.vec({1}), "x");
  x.set_grad(w.vec({16777216.0f}));
  w.tape.backward(toy_sum(toy_add(x, x)));
  CHECK(grad(x) == Floats{16777218.0f});
}

TEST_CASE("the tape keeps no values: only what ops save stays") {
  World w;
  const Variable x = w.tape.leaf(w.vec(Floats(64, 2)));
  const auto live = [&] { return w.rt->allocator().live_bytes(); };
  const int64_t before = live();
  Variable y = toy_add(x, x);
  for (int i = 0; i < 3; ++i) y = toy_add(y, x);
  CHECK(live() - before == 256);  // y alone
  const Variable z = toy_mul(y, x);
  y = {};
  CHECK(live() - before == 2 * 256);  // z, and y for toy_mul's backward
  w.tape.backward(toy_sum(z));
  CHECK(grad(x) == Floats(64, 20));  // 5x²
}

TEST_CASE("an input used twice by one op, and by several, gets each gradient once") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1, -3}));
  const Variable y = w.tape.leaf(w.vec({2, 5}));
  const Variable xx = toy_add(x, x);
  const Variable z = toy_add(toy_mul(xx, y), toy_add(x, y));  // 2xy + x + y
  w.tape.backward(toy_sum(z));
  CHECK(grad(x) == Floats{5, 11});
  CHECK(grad(y) == Floats{3, -5});
}

TEST_CASE("branches that the loss does not need, and constants, get no gradient") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1, 2}));
  const Variable unused = w.tape.leaf(w.vec({3, 4}));
  const Variable c = w.tape.constant(w.vec({7, 8}));
  const Variable branch = toy_mul(unused, x);
  CHECK(branch.requires_grad());
  CHECK_FALSE(toy_mul(c, c).requires_grad());
  w.tape.backward(toy_sum(toy_mul(x, c)));
  CHECK(grad(x) == Floats{7, 8});
  CHECK_FALSE(unused.grad());
  CHECK_FALSE(c.grad());
  CHECK(unused.state().pending_uses == 0);
}

TEST_CASE("an op of several outputs gets an empty gradient for the one that nobody used") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1, 2}));
  w.tape.backward(toy_sum(toy_pair(x)[1]));
  CHECK(grad(x) == Floats{2, 2});
  const auto both = toy_pair(x);
  w.tape.backward(toy_sum(toy_add(both[0], both[1])));
  CHECK(grad(x) == Floats{5, 5});
}

TEST_CASE("marks fire in reverse order, gradient or not") {
  World w;
  std::string fired;
  const Variable x = w.tape.leaf(w.vec({1}));
  const Variable c = w.tape.constant(w.vec({1}));
  w.tape.mark([&] { fired += 'a'; });
  toy_mul(c, c);
  w.tape.mark([&] { fired += 'b'; });
  toy_mul(x, x);  // leads nowhere
  w.tape.mark([&] { fired += 'c'; });
  const Variable loss = toy_sum(x);
  w.tape.mark([&] { fired += 'd'; });
  w.tape.backward(loss);
  CHECK(fired == "dcba");
  fired.clear();
  {
    const NoGrad no_grad(w.tape);
    w.tape.mark([&] { fired += 'x'; });
  }
  w.tape.backward(toy_sum(x));
  CHECK(fired.empty());
}

TEST_CASE("a mark sees the gradients of what was recorded after it, whole") {
  World w;
  const Variable x = w.tape.leaf(w.vec({2}), "x");
  const Variable y = w.tape.leaf(w.vec({3}), "y");
  const Variable h = toy_mul(x, x);
  bool whole = false;
  w.tape.mark([&] { whole = y.grad() && !x.grad(); });
  w.tape.backward(toy_sum(toy_mul(h, y)));
  CHECK(whole);
  CHECK(grad(x) == Floats{12});
}

TEST_CASE("nothing is recorded under NoGrad, which nests") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1}));
  {
    const NoGrad outer(w.tape);
    { const NoGrad inner(w.tape); }
    CHECK_FALSE(toy_mul(x, x).requires_grad());
    CHECK_FALSE(w.tape.recording({x}));
  }
  CHECK(w.tape.recording({x}));
  CHECK(w.tape.recorded() == 0);
  CHECK(x.state().pending_uses == 0);
  CHECK_THROWS_WITH(w.tape.backward(w.tape.constant(w.vec({1}))), Contains("backward wants"));
}

TEST_CASE("misuse says what is wrong") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1, 2}), "weight");
  CHECK_THROWS_WITH(w.tape.backward(x), Contains("not a leaf") && Contains("weight"));
  const Variable y = toy_mul(x, x);
  CHECK_THROWS_WITH(w.tape.backward(y), Contains("one element or a seed") && Contains("[2]"));
  CHECK_THROWS_WITH(w.tape.backward(y, w.vec({1, 2, 3})), Contains("another shape"));
  w.tape.backward(y, w.vec({1, 10}));
  CHECK(grad(x) == Floats{2, 40});
  CHECK_THROWS_WITH(w.tape.backward(y, w.vec({1, 1})), Contains("called before on this graph"));
  CHECK(grad(x) == Floats{2, 40});

  const Variable z = toy_mul(x, x);
  x.value().fill(3);
  CHECK_THROWS_WITH(w.tape.backward(toy_sum(z)),
                    Contains("changed in place") && Contains("weight") && Contains("toy_mul"));
  CHECK(w.tape.recorded() == 0);
  CHECK(x.state().pending_uses == 0);

  const Variable v = toy_mul(x, x);
  x.value().storage()->release();
  CHECK_THROWS_WITH(w.tape.backward(toy_sum(v)), Contains("released") && Contains("weight"));
  x.value().storage()->allocate();
  x.value().fill(1);
  w.tape.backward(toy_sum(toy_mul(x, x)));  // still works
  CHECK(grad(x) == Floats{4, 42});

  CHECK_THROWS_WITH(w.tape.leaf(Tensor::zeros(w.rt, {1}, DType::i32)), Contains("i32"));
}

TEST_CASE("a wrong backward of an op is told apart") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1, 2}));
  const Variable few =
      w.tape.record("two_inputs", w.vec({1}), {x, x}, [](const Tensor&) -> Grads { return {{}}; });
  CHECK_THROWS_WITH(w.tape.backward(few), Contains("two_inputs") && Contains("number"));
  const Variable shape =
      w.tape.record("bad_shape", w.vec({1}), {x}, [](const Tensor& dy) -> Grads { return {dy}; });
  CHECK_THROWS_WITH(w.tape.backward(shape), Contains("bad_shape") && Contains("[1]"));
}

TEST_CASE("a gradient given as an addition works first, second, and beside dense ones") {
  World w;
  const Variable table =
      w.tape.leaf(Tensor::from<float>(w.rt, {3, 2}, Floats{1, 2, 3, 4, 5, 6}), "table");
  const auto dense = [&] { return toy_sum(toy_mul(table, table)); };
  const auto sparse = [&] { return toy_sum(toy_row(table, 1)); };
  SECTION("alone") {
    w.tape.backward(sparse());
    CHECK(grad(table) == Floats{0, 0, 1, 1, 0, 0});
  }
  SECTION("twice the same row") {
    w.tape.backward(toy_sum(toy_add(toy_row(table, 2), toy_row(table, 2))));
    CHECK(grad(table) == Floats{0, 0, 0, 0, 2, 2});
  }
  SECTION("first: recorded last") {
    const Variable d = dense();
    w.tape.backward(toy_add(d, sparse()));
    CHECK(grad(table) == Floats{2, 4, 7, 9, 10, 12});
  }
  SECTION("second: recorded first") {
    const Variable s = sparse();
    w.tape.backward(toy_add(s, dense()));
    CHECK(grad(table) == Floats{2, 4, 7, 9, 10, 12});
  }
  SECTION("after a dense gradient that shares bytes with another") {
    const Variable other = w.tape.leaf(Tensor::zeros(w.rt, {3, 2}), "other");
    const Variable s = sparse();
    w.tape.backward(toy_add(s, toy_sum(toy_add(table, other))));
    CHECK(grad(table) == Floats{1, 1, 2, 2, 1, 1});
    CHECK(grad(other) == Floats{1, 1, 1, 1, 1, 1});
  }
}

TEST_CASE("parameter gradients are f32 whatever the dtype; activations' keep theirs") {
  World w;
  const Variable p = w.tape.leaf(w.vec({1, 2}).to(DType::bf16), "p");
  const Variable x = w.tape.leaf(w.vec({1, 2}).to(DType::bf16));
  const Variable y =
      w.tape.record("both", w.vec({1}).to(DType::bf16), {p, x}, [](const Tensor& dy) -> Grads {
        return {dy.expand({2}), dy.expand({2})};
      });
  w.tape.backward(y);
  CHECK(p.grad().dtype() == DType::f32);
  CHECK(x.grad().dtype() == DType::bf16);
  CHECK(p.grad().is_contiguous());
}

TEST_CASE("gradients of different dtypes add up in f32, and arrive in the dtype of the output") {
  World w;
  const auto half = [&](float x) { return w.vec({x, x}).to(DType::bf16); };
  const auto op = [&](const Variable& x, const Tensor& dx) {
    return w.tape.record("op", half(1), {x}, [dx](const Tensor&) -> Grads { return {dx}; });
  };
  // 1 + 2^-9 is no bf16: a sum formed in bf16 would lose it.
  const Tensor one = half(1);
  const Tensor small = half(0x1p-9f);
  const auto backward = [&](const Variable& a, const Variable& b) {
    w.tape.backward(w.tape.record("join", half(1), {a, b},
                                  [](const Tensor& dy) -> Grads {
                                    return {dy, dy};
                                  }),
                    half(1));
  };
  const Variable p = w.tape.leaf(half(3), "p");
  SECTION("a parameter's halves") {
    backward(op(p, one), op(p, small));
    CHECK(grad(p) == Floats{1 + 0x1p-9f, 1 + 0x1p-9f});
  }
  SECTION("a half, then f32, and the other way") {
    backward(op(p, small.to(DType::f32)), op(p, one));
    backward(op(p, one), op(p, small.to(DType::f32)));
    CHECK(grad(p) == Floats{2 + 0x1p-8f, 2 + 0x1p-8f});
  }
  SECTION("an activation's arrive as its dtype") {
    DType seen = DType::f64;
    const Variable h = w.tape.record("h", half(1), {p}, [&](const Tensor& dy) -> Grads {
      seen = dy.dtype();
      return {dy};
    });
    backward(op(h, one), op(h, small.to(DType::f32)));
    CHECK(seen == DType::bf16);
  }
  SECTION("an addition after a half") {
    const Grad add(std::function<void(const Tensor&)>([](const Tensor& total) {
      CHECK(total.dtype() == DType::f32);
      total.data<float>()[1] += 5;
    }));
    const Variable rows =
        w.tape.record("rows", half(1), {p}, [add](const Tensor&) -> Grads { return {add}; });
    backward(rows, op(p, one));
    CHECK(grad(p) == Floats{1, 6});
  }
}

TEST_CASE("clear forgets the graph and its pending uses") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1, 2}), "x");
  const int64_t live = w.rt->allocator().live_bytes();
  toy_mul(toy_mul(x, x), x);
  CHECK(x.state().pending_uses == 3);
  CHECK(w.rt->allocator().live_bytes() > live);
  w.tape.clear();
  CHECK(w.tape.recorded() == 0);
  CHECK(x.state().pending_uses == 0);
  CHECK(w.rt->allocator().live_bytes() == live);
  w.tape.backward(toy_sum(x));
  CHECK(grad(x) == Floats{1, 1});
}

TEST_CASE("backward frees what an op saved as it passes it") {
  World w;
  const Variable x = w.tape.leaf(Tensor::full(w.rt, {1024}, 1), "x");
  const int64_t before = w.rt->allocator().live_bytes();
  {
    Variable h = x;
    for (int i = 0; i < 8; ++i) h = toy_mul(h, h);
    h = toy_sum(h);
    w.tape.backward(h);
  }
  CHECK(w.rt->allocator().live_bytes() == before + 4096);  // the gradient of x
  CHECK(grad(x)[5] == 256);
}

TEST_CASE("the tape keeps no value alive that no backward saved") {
  World w;
  const Variable x = w.tape.leaf(Tensor::full(w.rt, {1024}, 1), "x");
  const int64_t before = w.rt->allocator().live_bytes();
  Variable h = x;
  for (int i = 0; i < 8; ++i) h = toy_add(h, h);
  CHECK(w.rt->allocator().live_bytes() == before + 4096);  // the last sum
  h = toy_sum(h);
  CHECK(w.rt->allocator().live_bytes() == before + 64);
  w.tape.backward(h);
  CHECK(grad(x)[5] == 256);
}

TEST_CASE("passes that give one variable gradients of different dtypes add up") {
  World w;
  const auto add_all = [&](const Variable& x, DType dtype) {
    return w.tape.record("fixed", w.vec({0}), {x}, [&w, dtype](const Tensor&) -> Grads {
      return {Tensor::full(w.rt, {2}, 1.5, dtype)};
    });
  };
  for (const auto& [first, second] :
       {std::pair(DType::bf16, DType::f32), std::pair(DType::f32, DType::bf16)}) {
    const Variable x = w.tape.leaf(Tensor::full(w.rt, {2}, 1, DType::bf16));
    w.tape.backward(add_all(x, first));
    w.tape.backward(add_all(x, second));
    CHECK(x.grad().dtype() == DType::f32);
    CHECK(x.grad().to_vector<float>() == Floats{3, 3});
  }
}

TEST_CASE("a gradient over the caller's memory is copied, not kept") {
  World w;
  Floats seed = {1, 2};
  const Variable x = w.tape.leaf(w.vec({5, 6}), "x");
  const Variable y =
      w.tape.record("same", w.vec({5, 6}), {x}, [](const Tensor& dy) -> Grads { return {dy}; });
  w.tape.backward(y, Tensor::over(w.rt, {2}, DType::f32, seed.data(), nullptr));
  CHECK(x.grad().data<float>() != seed.data());
  CHECK(grad(x) == Floats{1, 2});
}

TEST_CASE("check_finite names the op, forward and backward") {
  World w;
  w.tape.check_finite(true);
  const Variable x = w.tape.leaf(w.vec({1, 3e38f}));
  CHECK_THROWS_WITH(toy_mul(x, x), Contains("the output of toy_mul") && Contains("element 1"));
  const Variable bad = w.tape.record("bad_op", w.vec({1}), {x}, [&](const Tensor&) -> Grads {
    return {w.vec({0, std::nanf("")})};
  });
  try {
    w.tape.backward(bad);
    FAIL("a gradient that is not finite went through");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::numeric);
    CHECK_THAT(e.what(), Contains("a gradient of bad_op"));
  }
  w.tape.check_finite(false);
  CHECK(std::isinf(toy_mul(x, x).value().to_vector<float>()[1]));
}

TEST_CASE("errors in backward name where the op was recorded") {
  World w;
  const Variable x = w.tape.leaf(w.vec({1}));
  Variable y;
  {
    const Context unit("unit ", 3);
    y = w.tape.record("thrower", w.vec({1}), {x},
                      [](const Tensor&) -> Grads { fail("this op fails"); });
  }
  CHECK_THROWS_WITH(w.tape.backward(y), Contains("unit 3") && Contains("this op fails"));
}

}  // namespace
}  // namespace sherd::test
