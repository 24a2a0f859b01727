#include "tensor/tensor.h"

#include <cmath>
#include <limits>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Floats = std::vector<float>;

TEST_CASE("views share bytes and keep row-major meaning") {
  const auto rt = Runtime::create();
  const Tensor t = Tensor::from<float>(rt, {2, 3}, Floats{0, 1, 2, 3, 4, 5});
  CHECK(t.transpose(0, 1).to_vector<float>() == Floats{0, 3, 1, 4, 2, 5});
  CHECK(t.slice(1, 1, 3).to_vector<float>() == Floats{1, 2, 4, 5});
  CHECK(t.view({3, -1}).shape() == Shape{3, 2});
  CHECK(t.slice(0, 1, 2).expand({2, 1, 3}).to_vector<float>() == Floats{3, 4, 5, 3, 4, 5});
  CHECK(t.permute({1, 0}).contiguous().to_vector<float>() == Floats{0, 3, 1, 4, 2, 5});
  t.slice(1, 0, 1).fill(9);
  CHECK(t.to_vector<float>() == Floats{9, 1, 2, 9, 4, 5});
  CHECK(t.transpose(0, 1).data<float>() == t.data<float>());
  CHECK_THROWS_WITH(t.transpose(0, 1).view({6}), Catch::Contains("contiguous"));
  CHECK_THROWS_WITH(t.view({4}), Catch::Contains("number of elements"));
  CHECK_THROWS_WITH(t.data<double>(), Catch::Contains("another dtype"));
  CHECK_THROWS_WITH(t.slice(1, 2, 4), Catch::Contains("out of range"));
}

TEST_CASE("shapes whose bytes or strides would not fit are refused, on every device") {
  const Shape wraps = {int64_t{1} << 61};  // · 8 bytes is 2^64
  for (const Device device : {kCpu, kMeta}) {
    const auto rt = Runtime::create({.device = device});
    CHECK_THROWS_WITH(Tensor::empty(rt, wraps, DType::f64), Catch::Contains("too many elements"));
    CHECK_THROWS_WITH(Tensor::over(rt, wraps, DType::f64, nullptr, nullptr),
                      Catch::Contains("too many elements"));
    CHECK_THROWS_WITH(Tensor::empty(rt, {0, int64_t{1} << 40, int64_t{1} << 40}),
                      Catch::Contains("too many elements"));
    CHECK_THROWS_WITH(Tensor::empty(rt, {0, -1}), Catch::Contains("negative"));
    CHECK(rt->allocator().live_bytes() == 0);
  }
}

TEST_CASE("a view has no negative dims, though their product may fit") {
  const auto rt = Runtime::create();
  const Tensor t = Tensor::zeros(rt, {2, 3});
  CHECK_THROWS_WITH(t.view({-1, -1}), Catch::Contains("one dim of -1"));
  CHECK_THROWS_WITH(t.view({-2, -3}), Catch::Contains("negative"));
  CHECK_THROWS_WITH(t.view({-1, -2}), Catch::Contains("negative"));
  CHECK_THROWS_WITH(t.views_as({-6, -1}), Catch::Contains("negative"));
  CHECK_THROWS_WITH(t.view({-1, 4}), Catch::Contains("number of elements"));
  CHECK_THROWS_WITH(t.slice(1, 0, 1).expand({2, -1}), Catch::Contains("negative"));
}

TEST_CASE("bytes are not copied from a device that has none") {
  const auto rt = Runtime::create();
  const auto meta = Runtime::create({.device = kMeta});
  const Tensor t = Tensor::zeros(rt, {2});
  CHECK_THROWS_WITH(t.copy_from(Tensor::zeros(meta, {2})), Catch::Contains("meta to cpu"));
}

TEST_CASE("a view may cut dims, and merge those that lie one behind the other") {
  const auto rt = Runtime::create();
  std::vector<float> values(2 * 3 * 12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor t = Tensor::from<float>(rt, {2, 3, 12}, values);
  const Tensor part = t.slice(2, 4, 8);  // one of q, k and v of a fused projection
  const auto same = [&](const Tensor& x, const Shape& shape) {
    CHECK(x.views_as(shape));
    const Tensor view = x.view(shape);
    CHECK(view.shape() == shape);
    CHECK(view.data<float>() == x.data<float>());
    CHECK(view.to_vector<float>() == x.to_vector<float>());
  };
  same(part, {2, 3, 2, 2});
  same(part, {6, 4});
  same(part, {6, 2, 1, 2});
  same(part, {1, 6, 4, 1});
  same(part, {2, 1, 3, 4});
  same(part.transpose(0, 1), {3, 2, 2, 2});
  same(t.transpose(1, 2), {2, 3, 4, 3});
  same(t.slice(0, 1, 2), {36});
  same(t.slice(1, 0, 1), {2, 12});
  same(Tensor::full(rt, {}, 3), {1, 1});
  same(t.slice(0, 0, 1).slice(1, 1, 2).slice(2, 5, 6), {});
  same(Tensor::full(rt, {1, 1}, 3).expand({2, 3}), {6});
  same(t.slice(1, 1, 1).transpose(0, 2), {4, 0, 7});
  CHECK_FALSE(part.views_as({24}));
  CHECK_FALSE(part.views_as({2, 12}));
  CHECK_FALSE(part.views_as({3, 8}));
  CHECK_FALSE(t.transpose(0, 1).views_as({6, 12}));
  CHECK_FALSE(t.transpose(1, 2).views_as({2, 36}));
  CHECK_FALSE(t.slice(1, 0, 2).views_as({48}));
}

TEST_CASE("adjacent slices join without a copy") {
  const auto rt = Runtime::create();
  const Tensor t = Tensor::from<float>(rt, {2, 3}, Floats{0, 1, 2, 3, 4, 5});
  const auto cut = [&](int dim, std::vector<std::pair<int64_t, int64_t>> ranges) {
    std::vector<Tensor> parts;
    for (const auto& [begin, end] : ranges) parts.push_back(t.slice(dim, begin, end));
    return Tensor::joined(parts, dim);
  };
  for (const Tensor& whole : {cut(1, {{0, 1}, {1, 3}}), cut(-1, {{0, 0}, {0, 2}, {2, 2}, {2, 3}}),
                              cut(0, {{0, 1}, {1, 2}}), cut(0, {{0, 2}})}) {
    REQUIRE(whole);
    CHECK(whole.is_contiguous());
    CHECK(whole.data<float>() == t.data<float>());
    CHECK(whole.shape() == t.shape());
  }
  CHECK(cut(1, {{1, 2}, {2, 3}}).to_vector<float>() == Floats{1, 2, 4, 5});
  CHECK_FALSE(cut(1, {{0, 1}, {2, 3}}));
  CHECK_FALSE(cut(1, {{1, 3}, {0, 1}}));
  CHECK_FALSE(cut(0, {{0, 1}, {0, 1}}));
  CHECK_FALSE(Tensor::joined(std::vector{t, t.clone()}, 0));
  CHECK_FALSE(Tensor::joined(std::vector{t.slice(1, 0, 1), Tensor()}, 1));
  CHECK_FALSE(Tensor::joined(std::vector{t.slice(0, 0, 1), t.slice(0, 1, 2).slice(1, 0, 2)}, 0));
}

TEST_CASE("scalars and empty tensors are tensors") {
  const auto rt = Runtime::create();
  CHECK(Tensor::full(rt, {}, 2.5).item() == 2.5);
  const Tensor none = Tensor::zeros(rt, {0, 4});
  CHECK(none.numel() == 0);
  CHECK(none.clone().to_vector<float>().empty());
  CHECK(none.view({4, 0}).shape() == Shape{4, 0});
}

TEST_CASE("dtypes convert and round to nearest even") {
  const auto rt = Runtime::create({.threads = 2});
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 100;
  const float inf = std::numeric_limits<float>::infinity();
  x[7] = inf, x[8] = -inf, x[9] = 0.0f, x[10] = 1e-40f, x[11] = 3.4e38f;
  const Tensor t = Tensor::from<float>(rt, {1000}, x);
  const auto b = t.to(DType::bf16).to_vector<bf16>();
  const auto h = t.to(DType::f16).to_vector<f16>();
  for (size_t i = 0; i < x.size(); ++i) {
    INFO(i);
    CHECK(b[i].bits == bf16(x[i]).bits);
    CHECK(h[i].bits == f16(x[i]).bits);
  }
  CHECK(bf16(1.00390625f).bits == 0x3f80);  // halfway: to even
  CHECK(bf16(1.01171875f).bits == 0x3f82);
  CHECK(std::isnan(static_cast<float>(bf16(std::nanf("")))));
  const float nan = std::nanf("");
  CHECK(std::isnan(Tensor::from<float>(rt, {1}, Floats{nan}).to(DType::bf16).item()));
  CHECK(t.to(DType::i64).to_vector<int64_t>()[1] == static_cast<int64_t>(x[1]));
  CHECK(t.transpose(0, 0).to(DType::f64).to_vector<double>()[3] == x[3]);
}

TEST_CASE("f16 converts like the hardware over its whole range") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    f16 h;
    h.bits = static_cast<uint16_t>(bits);
    const auto x = static_cast<float>(h);
    if (std::isnan(x)) continue;
    if (f16(x).bits != h.bits) FAIL("f16 bits do not survive: " << bits);
  }
  CHECK(f16(65519.0f).bits == 0x7bff);
  CHECK(f16(65520.0f).bits == 0x7c00);
  CHECK(f16(5.9604645e-08f).bits == 1);
}

TEST_CASE("tensors of f16 convert like single values, over the whole range") {
  const auto rt = Runtime::create();
  std::vector<f16> all(0x10000);
  for (size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<uint16_t>(i);
  const auto wide = Tensor::from<f16>(rt, {0x10000}, all).to(DType::f32).to_vector<float>();
  std::vector<float> between(wide.size());  // a little above the middle, the middle, or below
  for (size_t i = 0; i < all.size(); ++i) {
    const auto x = static_cast<float>(all[i]);
    if (!(wide[i] == x || (std::isnan(wide[i]) && std::isnan(x)))) FAIL("from f16 of bits " << i);
    f16 next;
    next.bits = static_cast<uint16_t>(i ^ 1);
    between[i] =
        (x + static_cast<float>(next)) / 2 * (1 + (static_cast<float>(i % 3) - 1) * 0x1p-20f);
  }
  const auto narrow = Tensor::from<float>(rt, {0x10000}, between).to(DType::f16).to_vector<f16>();
  for (size_t i = 0; i < all.size(); ++i) {
    const f16 want(between[i]);
    const bool nan = std::isnan(between[i]) && std::isnan(static_cast<float>(narrow[i]));
    if (narrow[i].bits != want.bits && !nan) FAIL("to f16 of " << between[i]);
  }
}

TEST_CASE("released bytes come back, and reading them meanwhile names the owner") {
  const auto rt = Runtime::create();
  const Tensor t = Tensor::empty(rt, {4}, DType::f32, "blocks.3.mlp.up.weight");
  const Tensor view = t.slice(0, 1, 3);
  const int64_t live = rt->allocator().live_bytes();
  t.storage()->release();
  CHECK(rt->allocator().live_bytes() == live - 64);
  CHECK_THROWS_WITH(view.data<float>(), Catch::Contains("blocks.3.mlp.up.weight"));
  t.storage()->allocate();
  t.fill(1);
  CHECK(view.to_vector<float>() == Floats{1, 1});
}

TEST_CASE("meta tensors have shapes and counted bytes, and no memory") {
  const auto rt = Runtime::create({.device = kMeta});
  const Tensor t = Tensor::zeros(rt, {1 << 20, 1 << 10});
  CHECK(t.data<float>() == nullptr);
  CHECK(rt->allocator().live_bytes() == int64_t{4} << 30);
  CHECK(t.transpose(0, 1).contiguous().shape() == Shape{1 << 10, 1 << 20});
  CHECK_THROWS(t.to_vector<float>());
}

TEST_CASE("foreign memory is viewed, not copied, and kept alive") {
  const auto rt = Runtime::create();
  auto values = std::make_shared<Floats>(Floats{1, 2, 3, 4});
  const Tensor t = Tensor::over(rt, {2, 2}, DType::f32, values->data(), values);
  t.slice(0, 1, 2).fill(7);
  CHECK(*values == Floats{1, 2, 7, 7});
  CHECK(values.use_count() == 2);
  CHECK(rt->allocator().live_bytes() == 0);
  CHECK_THROWS_WITH(t.storage()->release(), Catch::Contains("belongs to the caller"));
}

TEST_CASE("writes bump the version that autograd checks") {
  const auto rt = Runtime::create();
  const Tensor t = Tensor::zeros(rt, {3});
  const uint64_t before = t.storage()->version();
  t.fill(1);
  t.copy_from(Tensor::full(rt, {}, 2));
  CHECK(t.storage()->version() == before + 2);
  CHECK(t.to_vector<float>() == Floats{2, 2, 2});
}

TEST_CASE("shapes broadcast as NumPy's do") {
  CHECK(broadcast({2, 1, 3}, {4, 1}) == Shape{2, 4, 3});
  CHECK(broadcast({}, {2}) == Shape{2});
  CHECK(broadcast({0, 1}, {1, 3}) == Shape{0, 3});
  CHECK_THROWS_WITH(broadcast({2}, {3}), Catch::Contains("[2] and [3]"));
  CHECK_THROWS(Shape({int64_t{1} << 40, int64_t{1} << 40}).numel());
}

}  // namespace
}  // namespace sherd
