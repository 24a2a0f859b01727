#include "autograd/ops/shape_ops.h"

#include "tests/support/golden.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

using Function = std::function<Variable(const std::vector<Variable>&)>;

/// Nothing is computed, so every dtype must give the oracle's values to the bit.
OpCase case_of(const char* name, std::vector<CaseInput> inputs, Function op,
               std::function<std::vector<double>(const CaseValues&)> oracle) {
  return {.name = name,
          .inputs = std::move(inputs),
          .op = std::move(op),
          .oracle = std::move(oracle),
          .dtypes = {DType::f32, DType::bf16, DType::f16},
          .f64 = {0, 0},
          .f32 = {1e-7, 0},  // the seed of backward is rounded
          .half = {4e-3, 0}};
}

bool share_bytes(const Tensor& a, const Tensor& b) { return a.storage() == b.storage(); }

TEST_CASE("reshape keeps the order of elements") {
  const auto same = [](const CaseValues& in) { return in[0]; };
  const auto to = [](const Shape& shape) {
    return [=](const auto& in) { return reshape(in[0], shape); };
  };
  run(case_of("split a dim", {{{3, 10}}}, to({3, 2, 5}), same));
  run(case_of("merge dims", {{{3, 2, 5}}}, to({6, -1}), same));
  run(case_of("no elements", {{{0, 5}}}, to({5, 0, 2}), same));
  run(case_of("one element", {{{1}}}, to({}), same));
  run(case_of("a scalar", {{{}}}, to({1, 1}), same));
}

TEST_CASE("reshape copies only what the strides do not allow") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {2, 3, 12}, 1));
  CHECK(share_bytes(reshape(x, {6, 12}).value(), x.value()));
  const Variable part = slice(x, 2, 4, 8);
  CHECK(share_bytes(reshape(part, {2, 3, 2, 2}).value(), x.value()));
  const Variable turned = transpose(x, 0, 1);
  const Variable flat = reshape(turned, {-1});
  CHECK_FALSE(share_bytes(flat.value(), x.value()));
  CHECK(flat.value().to_vector<double>() == turned.value().to_vector<double>());
  CHECK_THROWS_WITH(reshape(x, {5, 5}), Catch::Contains("reshape") && Catch::Contains("[5, 5]"));
}

TEST_CASE("transpose, permute and slice are views") {
  run(case_of(
      "transpose", {{{3, 5}}}, [](const auto& in) { return transpose(in[0], 0, -1); },
      [](const CaseValues& in) {
        std::vector<double> y;
        for (size_t i = 0; i < 5; ++i)
          for (size_t j = 0; j < 3; ++j) y.push_back(in[0][j * 5 + i]);
        return y;
      }));
  run(case_of(
      "permute", {{{2, 3, 5}}},
      [](const auto& in) {
        return permute(in[0], {2, 0, -2});
      },
      [](const CaseValues& in) {
        std::vector<double> y;
        for (size_t k = 0; k < 5; ++k)
          for (size_t i = 0; i < 2; ++i)
            for (size_t j = 0; j < 3; ++j) y.push_back(in[0][(i * 3 + j) * 5 + k]);
        return y;
      }));
  run(case_of(
      "slice", {{{2, 7, 3}}}, [](const auto& in) { return slice(in[0], 1, 2, 5); },
      [](const CaseValues& in) {
        std::vector<double> y;
        for (size_t i = 0; i < 2; ++i)
          for (size_t j = 2; j < 5; ++j)
            for (size_t k = 0; k < 3; ++k) y.push_back(in[0][(i * 7 + j) * 3 + k]);
        return y;
      }));
  const auto nothing = [](const CaseValues&) { return std::vector<double>(); };
  run(case_of(
      "an empty slice", {{{2, 7}}}, [](const auto& in) { return slice(in[0], -1, 3, 3); },
      nothing));
  run(case_of(
      "no elements", {{{0, 7}}},
      [](const auto& in) {
        return permute(in[0], {1, 0});
      },
      nothing));

  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {2, 3, 4}, 1));
  CHECK(share_bytes(transpose(x, 0, 2).value(), x.value()));
  CHECK(share_bytes(permute(x, {2, 0, 1}).value(), x.value()));
  CHECK(share_bytes(slice(x, 1, 1, 3).value(), x.value()));
  CHECK_THROWS_WITH(permute(x, {0, 0, 1}), Catch::Contains("permute"));
  CHECK_THROWS_WITH(permute(x, {0, 1}), Catch::Contains("permute"));
  CHECK_THROWS_WITH(transpose(x, 0, 3), Catch::Contains("transpose"));
  CHECK_THROWS_WITH(slice(x, 0, 1, 3), Catch::Contains("slice"));
}

TEST_CASE("expand repeats, and its gradient sums") {
  OpCase c = case_of(
      "new and repeated dims", {{{3, 1, 5}}},
      [](const auto& in) {
        return expand(in[0], {2, 3, 4, 5});
      },
      [](const CaseValues& in) {
        std::vector<double> y;
        for (size_t n = 0; n < 2; ++n)
          for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 4; ++j)
              for (size_t k = 0; k < 5; ++k) y.push_back(in[0][i * 5 + k]);
        return y;
      });
  c.f32 = {1e-6, 1e-6};
  c.half = {1e-2, 1e-2};
  run(c);
  c = case_of(
      "a scalar", {{{}}}, [](const auto& in) { return expand(in[0], {3}); },
      [](const CaseValues& in) { return std::vector<double>(3, in[0][0]); });
  c.f32 = {1e-6, 1e-6};
  c.half = {1e-2, 1e-2};
  run(c);
  run(case_of(
      "to nothing", {{{1, 3}}},
      [](const auto& in) {
        return expand(in[0], {0, 3});
      },
      [](const CaseValues&) { return std::vector<double>(); }));

  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {2, 1}, 1));
  CHECK(share_bytes(expand(x, {2, 3}).value(), x.value()));
  CHECK_THROWS_WITH(expand(x, {3, 3}), Catch::Contains("expand"));
  // What computes the repeated tensor gets its gradient in its own dtype.
  const Variable half = tape.leaf(uniform(rt, {2, 1}, 1, -2, 2, DType::bf16));
  tape.backward(expand(transpose(half, 0, 1), {3, 2}), Tensor::full(rt, {3, 2}, 1, DType::bf16));
  CHECK(half.grad().to_vector<double>() == std::vector<double>{3, 3});
}

TEST_CASE("concat puts tensors one behind the other") {
  run(case_of(
      "along the last dim", {{{2, 1}}, {{2, 0}}, {{2, 3}}},
      [](const auto& in) { return concat(in, -1); },
      [](const CaseValues& in) {
        std::vector<double> y;
        for (size_t i = 0; i < 2; ++i) {
          y.push_back(in[0][i]);
          for (size_t j = 0; j < 3; ++j) y.push_back(in[2][i * 3 + j]);
        }
        return y;
      }));
  run(case_of(
      "one tensor", {{{2, 3}}}, [](const auto& in) { return concat(in, 0); },
      [](const CaseValues& in) { return in[0]; }));

  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {2, 3}, 1));
  tape.backward(concat({x, x}, 0), uniform(rt, {4, 3}, 2));  // one input twice
  const auto seed = uniform(rt, {4, 3}, 2).to_vector<float>();
  const auto dx = x.grad().to_vector<float>();
  for (size_t i = 0; i < 6; ++i) CHECK(dx[i] == seed[i] + seed[i + 6]);
  CHECK_THROWS_WITH(concat({}, 0), Catch::Contains("concat"));
  CHECK_THROWS_WITH(concat({x, tape.leaf(Tensor::zeros(rt, {2, 2}))}, 0),
                    Catch::Contains("[2, 3] and [2, 2]"));
  CHECK_THROWS_WITH(concat({x, tape.leaf(Tensor::zeros(rt, {2, 3}, DType::f64))}, 0),
                    Catch::Contains("f64"));
}

TEST_CASE("split gives views, and its parts join again") {
  run(case_of(
      "parts in another order", {{{2, 6, 3}}},
      [](const auto& in) {
        const auto parts = split(in[0], 1, {1, 0, 3, 2});
        return concat({parts[2], parts[0], parts[1], parts[3]}, 1);
      },
      [](const CaseValues& in) {
        std::vector<double> y;
        for (size_t i = 0; i < 2; ++i)
          for (const size_t j : {1u, 2u, 3u, 0u, 4u, 5u})
            for (size_t k = 0; k < 3; ++k) y.push_back(in[0][(i * 6 + j) * 3 + k]);
        return y;
      }));
  run(case_of(
      "a part unused", {{{2, 6}}},
      [](const auto& in) {
        return split(in[0], -1, {2, 1, 3})[1];
      },
      [](const CaseValues& in) {
        return std::vector<double>{in[0][2], in[0][8]};
      }));
  run(case_of(
      "no rows", {{{0, 6}}},
      [](const auto& in) {
        return split(in[0], 1, {2, 4})[1];
      },
      [](const CaseValues&) { return std::vector<double>(); }));

  const auto rt = Runtime::create();
  Tape tape(rt);
  const Variable x = tape.leaf(uniform(rt, {2, 6}, 1));
  for (const Variable& part : split(x, 1, {2, 4})) CHECK(share_bytes(part.value(), x.value()));
  CHECK_THROWS_WITH(split(x, 1, {2, 3}),
                    Catch::Contains("split") && Catch::Contains("add up to 5"));
  CHECK_THROWS_WITH(split(x, 1, {2, 5}), Catch::Contains("exceed"));
  CHECK_THROWS_WITH(split(x, 1, {-1, 7}), Catch::Contains("exceed"));
}

TEST_CASE("the gradient of split is not copied where its parts lie side by side") {
  const auto rt = Runtime::create();
  Tape tape(rt);
  const Tensor all = uniform(rt, {2, 3, 4}, 7);
  const auto gradient_of = [&](std::vector<Tensor> grads) {
    const Variable x = tape.leaf(uniform(rt, {2, 3, 4}, 1));
    Tensor seen;
    const Variable probe = tape.record("probe", x.value(), {x}, [&](const Tensor& dy) -> Grads {
      seen = dy;
      return {dy};
    });
    const auto parts = split(probe, 1, {1, 0, 2});
    const Variable y = tape.record("y", Tensor::zeros(rt, {}), parts, [&](const Tensor&) -> Grads {
      return {grads[0], grads[1], grads[2]};
    });
    tape.backward(y);
    CHECK(x.grad().to_vector<float>() == seen.to_vector<float>());
    return seen;
  };
  const auto part = [&](int64_t begin, int64_t end) { return all.slice(1, begin, end); };
  CHECK(share_bytes(gradient_of({part(0, 1), part(1, 1), part(1, 3)}), all));
  const Tensor copied = gradient_of({part(2, 3), part(1, 1), part(0, 2)});
  CHECK_FALSE(share_bytes(copied, all));
  CHECK(copied.slice(1, 1, 3).to_vector<float>() == part(0, 2).to_vector<float>());
  const Tensor with_hole = gradient_of({part(0, 1), part(1, 1), Tensor()});
  CHECK(with_hole.slice(1, 0, 1).to_vector<float>() == part(0, 1).to_vector<float>());
  CHECK(with_hole.slice(1, 1, 3).to_vector<float>() == std::vector<float>(16, 0));
}

TEST_CASE("shape ops agree with PyTorch") {
  const auto all_of = [](int dim) { return [=](const auto& in) { return concat(in, dim); }; };
  check_golden("concat_dim1", {"x0", "x1", "x2"}, all_of(1), {0, 0});
  check_golden("concat_dim0", {"x0", "x1"}, all_of(0), {0, 0});
  check_golden("concat_last", {"x0", "x1", "x2"}, all_of(-1), {0, 0});
  const auto order = [](std::vector<int> dims) {
    return [=](const auto& in) { return permute(in[0], dims); };
  };
  check_golden("permute_10", {"x"}, order({1, 0}), {0, 0});
  check_golden("permute_201", {"x"}, order({2, 0, 1}), {0, 0});
  check_golden("permute_0213", {"x"}, order({0, 2, 1, 3}), {0, 0});
  check_golden("permute_2031", {"x"}, order({2, 0, 3, 1}), {0, 0});
  for (const auto& [name, dim, sizes] :
       {std::tuple("split_dim1", 1, std::vector<int64_t>{2, 5, 3}),
        std::tuple("split_last", -1, std::vector<int64_t>{4, 4, 4})}) {
    INFO(name);
    const Golden golden(name);
    const auto rt = Runtime::create();
    Tape tape(rt);
    const Variable x = tape.leaf(golden.tensor(rt, "in.x"));
    const auto parts = split(x, dim, sizes);
    std::vector<Tensor> seeds;
    for (size_t i = 0; i < parts.size(); ++i) {
      CHECK(near(parts[i].value(), golden.values("out." + std::to_string(i)), {0, 0}));
      seeds.push_back(golden.tensor(rt, "dout." + std::to_string(i)));
    }
    tape.backward(tape.record("seeds", Tensor::zeros(rt, {}), parts, [&](const Tensor&) -> Grads {
      return {seeds[0], seeds[1], seeds[2]};
    }));
    CHECK(near(x.grad(), golden.values("grad.x"), {0, 0}));
  }
}

}  // namespace
}  // namespace sherd::test
