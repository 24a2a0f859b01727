#include "optim/grad_clip.h"

#include <cmath>

#include "tests/optim/slots.h"
#include "tests/support/golden.h"
#include "tests/support/near.h"
#include "tests/support/op_case.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;
using test::all_isas;
using test::copy_of;
using test::cut;
using test::slot_like;

Slot slot_of(const Tensor& grad, const std::string& name = "") {
  Slot slot;
  slot.name = name;
  slot.grad = grad;
  return slot;
}

void follow_golden(const std::string& name, NormKind kind, double max_norm) {
  const test::Golden golden(name);
  for (const Isa isa : all_isas()) {
    INFO(name << ' ' << name_of(isa));
    const auto rt = Runtime::create({.isa = isa});
    std::vector<Slot> slots;
    for (const char* in : {"in.0", "in.1", "in.2"}) slots.push_back(slot_of(golden.tensor(rt, in)));
    const GradNorm norm = grad_norm(slots, 1, kind);
    CHECK(norm.norm == Approx(golden.values("out.norm")[0]).epsilon(1e-14));
    CHECK(norm.not_finite.empty());
    const double factor = clip_factor(norm.norm, max_norm);
    for (int i = 0; i < 3; ++i) {
      auto clipped = golden.values(detail::concat("in.", i));
      for (double& x : clipped) x *= factor;
      CHECK(test::near(clipped, golden.values(detail::concat("out.", i)), {1e-13, 0}));
    }
  }
}

TEST_CASE("norms and factors are those of PyTorch") {
  follow_golden("clip_norm2", NormKind::two, 1.0);
  follow_golden("clip_norm2_below", NormKind::two, 1e3);
  follow_golden("clip_norminf", NormKind::infinity, 0.5);
}

TEST_CASE("threads and layouts change no bit") {
  const auto one = Runtime::create();
  const auto two = Runtime::create({.threads = 2});
  const std::vector<Slot> whole{
      slot_like(one, {501, 333}, DType::f32, 1), slot_like(one, {70001}, DType::f32, 2),
      slot_like(one, {3, 2, 70001}, DType::f32, 3), slot_like(one, {}, DType::f32, 4),
      slot_like(one, {0, 7}, DType::f32, 5)};
  for (const NormKind kind : {NormKind::two, NormKind::infinity}) {
    const double norm = grad_norm(whole, 1, kind).norm;
    CHECK(norm > 0);
    std::vector<Slot> threaded;
    for (const Slot& slot : whole) threaded.push_back(copy_of(slot, two));
    CHECK(grad_norm(threaded, 1, kind).norm == norm);

    std::vector<Slot> pieces;  // other rows together, another order
    for (size_t i = 3; i-- > 0;) {
      const int64_t rows = whole[i].grad.size(0);
      for (const auto& [begin, end] :
           {std::pair<int64_t, int64_t>{rows / 3, rows}, {0, 0}, {0, rows / 3}})
        pieces.push_back(cut(copy_of(whole[i], two), begin, end));
    }
    pieces.push_back(copy_of(whole[3], two));
    CHECK(grad_norm(pieces, 1, kind).norm == norm);
  }
}

TEST_CASE("ranks that bring their rows get the norm of all") {
  const auto rt = Runtime::create();
  const std::vector<Slot> whole{slot_like(rt, {101, 33}, DType::f32, 1),
                                slot_like(rt, {77}, DType::f32, 2)};
  for (const NormKind kind : {NormKind::two, NormKind::infinity}) {
    // Rank 0's words are kept, then rank 1 exchanges with them.
    std::vector<std::vector<Slot>> ranks(2);
    for (const Slot& slot : whole) {
      ranks[0].push_back(cut(slot, 0, 13));
      ranks[1].push_back(cut(slot, 13, slot.grad.size(0)));
    }
    std::vector<int64_t> kept;
    const auto keep = [&](std::span<int64_t> words) { kept.assign(words.begin(), words.end()); };
    grad_norm(ranks[0], 0.25, kind, {.sum = keep, .max = keep});
    const NormExchange exchange{
        .sum =
            [&](std::span<int64_t> w) {
              for (size_t i = 0; i < w.size(); ++i) w[i] += kept[i];
            },
        .max = [&](std::span<int64_t> w) { w[0] = std::max(w[0], kept[0]); }};
    CHECK(grad_norm(ranks[1], 0.25, kind, exchange).norm == grad_norm(whole, 0.25, kind).norm);
  }
}

TEST_CASE("f64 gradients, and the scale") {
  for (const Isa isa : all_isas()) {
    const auto rt = Runtime::create({.isa = isa});
    std::vector<Slot> slots{slot_of(Tensor::from<double>(rt, {2}, std::vector<double>{3, -4}))};
    CHECK(grad_norm(slots, 1, NormKind::two).norm == 5);
    CHECK(grad_norm(slots, 0.5, NormKind::two).norm == 2.5);
    CHECK(grad_norm(slots, 0.5, NormKind::infinity).norm == 2);
    CHECK(grad_norm({}, 1, NormKind::two).norm == 0);
    slots[0].grad = {};
    CHECK(grad_norm(slots, 1, NormKind::two).norm == 0);
    CHECK_THROWS_WITH(grad_norm(slots, NAN, NormKind::two), Contains("finite"));
  }
}

TEST_CASE("a gradient that is not finite shows in the norm, and is named") {
  for (const Isa isa : all_isas()) {
    const auto rt = Runtime::create({.isa = isa});
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      for (const Shape& shape : {Shape{5, 41}, Shape{205}, Shape{1, 205}}) {
        std::vector<Slot> slots{slot_like(rt, {4}, DType::f32, 1),
                                slot_like(rt, shape, DType::f32, 2),
                                slot_like(rt, shape, DType::f32, 3)};
        slots[1].grad.view({205}).slice(0, 204, 205).fill(bad);
        for (const NormKind kind : {NormKind::two, NormKind::infinity}) {
          const GradNorm norm = grad_norm(slots, 1, kind);
          CHECK(!std::isfinite(norm.norm));
          CHECK(norm.not_finite == "slot.2");
          CHECK_THROWS_WITH(clip_factor(norm.norm, 1), Contains("not finite"));
        }
      }
    }
  }
}

TEST_CASE("large values do not overflow, small ones do not vanish") {
  const auto rt = Runtime::create();
  for (const float x : {3e38f, 1e-38f, 1e-45f}) {
    const std::vector<Slot> slots{slot_of(Tensor::full(rt, {4}, x))};
    CHECK(grad_norm(slots, 1, NormKind::two).norm == 2 * static_cast<double>(x));
  }
}

TEST_CASE("the factor") {
  CHECK(clip_factor(10, 1) == 1 / (10 + 1e-6));
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(10, 0) == 1);
  CHECK(clip_factor(0, 1) == 1);
  CHECK_THROWS_WITH(clip_factor(1, -1), Contains("clip_norm"));
}

}  // namespace
}  // namespace sherd
