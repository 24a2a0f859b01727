#include "tensor/random.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Words = std::array<uint32_t, 4>;

TEST_CASE("Philox gives its authors' known answers") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const uint32_t all = 0xffffffff;
  CHECK(philox4x32({all, all, all, all}, {all, all}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

template <class Fill>
std::vector<float> values(int64_t n, int threads, int64_t first, const Fill& fill) {
  const Tensor t = Tensor::empty(Runtime::create({.threads = threads}), {n});
  fill(t, first);
  return t.to_vector<float>();
}

TEST_CASE("a value depends on key and index alone: parts, threads, views and dtypes agree") {
  const RandomKey key = RandomKey{7, 0}.derive("blocks.3.mlp.up.weight");
  const auto uniform = [&](const Tensor& t, int64_t first) { fill_uniform(t, key, -1, 1, first); };
  const auto normal = [&](const Tensor& t, int64_t first) { fill_normal(t, key, 1, 0.5, first); };
  const auto check_fill = [&](const auto& fill) {
    const auto whole = values(40001, 1, 0, fill);
    CHECK(values(40001, 2, 0, fill) == whole);
    for (const auto& [first, n] : {std::pair<int64_t, int64_t>{0, 1},
                                   {1, 1},
                                   {3, 2},
                                   {5, 17},
                                   {16383, 2},
                                   {16385, 20000},
                                   {40000, 1}}) {
      const auto part = values(n, 2, first, fill);
      INFO(first << " " << n);
      CHECK(std::equal(part.begin(), part.end(), whole.begin() + first));
    }
    const auto rt = Runtime::create();
    const Tensor wide = Tensor::zeros(rt, {6, 5});
    fill(wide.transpose(0, 1), 0);  // row-major over the view
    const auto view = wide.transpose(0, 1).to_vector<float>();
    CHECK(std::equal(view.begin(), view.end(), whole.begin()));
    const Tensor half = Tensor::empty(rt, {30}, DType::bf16);
    fill(half, 0);
    const auto h = half.to_vector<float>();
    for (size_t i = 0; i < h.size(); ++i) CHECK(h[i] == static_cast<float>(bf16(whole[i])));
    fill(Tensor::empty(rt, {0}), 0);
    fill(Tensor::empty(Runtime::create({.device = kMeta}), {10}), 0);
  };
  check_fill(uniform);
  check_fill(normal);
  const Tensor t = Tensor::zeros(Runtime::create(), {3});
  const uint64_t version = t.storage()->version();
  fill_uniform(t, key, 0, 1);
  CHECK(t.storage()->version() == version + 1);
  CHECK_THROWS(fill_uniform(t, key, 0, 1, -1));
  CHECK_THROWS(fill_normal(Tensor::zeros(t.runtime(), {3}, DType::i32), key, 0, 1));
}

TEST_CASE("the first numbers of a key never change") {
  const Tensor t = Tensor::empty(Runtime::create(), {4}, DType::f64);
  fill_normal(t, {1, 2}, 0, 1);
  const auto z = t.to_vector<double>();
  // By the formula in random.cc with libm.
  const Words w = random_words({1, 2}, 0);
  for (size_t i = 0; i < 4; i += 2) {
    const double radius = std::sqrt(-2 * std::log((w[i] + 0.5) * 0x1p-32));
    const double angle = M_PI / 2 * (w[i + 1] * 0x1p-30 - 0.5);
    CHECK(z[i] == Approx(radius * std::cos(angle)).epsilon(1e-14).margin(1e-15));
    CHECK(z[i + 1] == Approx(radius * std::sin(angle)).epsilon(1e-14).margin(1e-15));
  }
  const RandomKey a = RandomKey{1, 2}.derive("w");
  CHECK(a.seed == 1);
  CHECK(a == RandomKey{1, 2}.derive("w"));
  CHECK(random_words(a, 0) == Words{0x4c8f9600, 0x557be106, 0x3548d0dc, 0x1ade11c3});
}

TEST_CASE("moments and tails are those of the distributions") {
  const int64_t n = 1 << 20;
  const Tensor t = Tensor::empty(Runtime::create({.threads = 2}), {n});
  const double root = std::sqrt(static_cast<double>(n));
  fill_normal(t, {3, 4}, 0, 1);
  double sums[5] = {};
  int64_t beyond_two = 0;
  const auto z = t.to_vector<double>();
  for (const double x : z) {
    for (int k = 1; k <= 4; ++k) sums[k] += std::pow(x, k) / static_cast<double>(n);
    beyond_two += std::abs(x) > 2;
  }
  CHECK(std::abs(sums[1]) < 4 / root);
  CHECK(std::abs(sums[2] - 1) < 4 * std::sqrt(2.0) / root);
  CHECK(std::abs(sums[3]) < 4 * std::sqrt(15.0) / root);
  CHECK(std::abs(sums[4] - 3) < 4 * std::sqrt(96.0) / root);
  CHECK(static_cast<double>(beyond_two) / static_cast<double>(n) == Approx(0.0455).epsilon(0.02));
  double neighbours = 0;
  for (size_t i = 1; i < z.size(); ++i) neighbours += z[i] * z[i - 1] / static_cast<double>(n);
  CHECK(std::abs(neighbours) < 4 / root);

  fill_uniform(t, {3, 5}, 2, 6);
  const auto u = t.to_vector<double>();
  double mean = 0;
  for (const double x : u) mean += x / static_cast<double>(n);
  CHECK(std::abs(mean - 4) < 4 * 4 / std::sqrt(12.0) / root);
  CHECK(*std::min_element(u.begin(), u.end()) >= 2);
  CHECK(*std::max_element(u.begin(), u.end()) <= 6);
}

TEST_CASE("derived keys differ, and their sequences do not overlap") {
  std::set<uint64_t> streams;
  const RandomKey root{1, 0};
  for (uint64_t i = 0; i < 1000; ++i) {
    streams.insert(root.derive(i).stream);
    streams.insert(root.derive(std::to_string(i)).stream);
    streams.insert(root.derive(1).derive(i).stream);
    streams.insert(root.derive(i).derive(1).stream);
  }
  CHECK(streams.size() == 3999);  // derive(1).derive(1) twice
}

}  // namespace
}  // namespace sherd
