#include "optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
using test::same_bits;
using test::slot_like;

const AdamWOptions kBetas{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};

void follow_golden(const std::string& name, double weight_decay, DType dtype, double tolerance) {
  const test::Golden golden(name);
  for (const Isa isa : all_isas()) {
    INFO(name << ' ' << name_of(isa) << ' ' << dtype);
    const auto rt = Runtime::create({.isa = isa});
    AdamW adamw(kBetas);
    std::vector<Slot> slots(1);
    slots[0].value = golden.tensor(rt, "in.param", dtype).clone();
    slots[0].weight_decay = weight_decay;
    const Tensor grads = golden.tensor(rt, "in.grads", dtype);
    const Tensor want = golden.tensor(rt, "out.param");
    for (int64_t step = 0; step < 5; ++step) {
      slots[0].grad = grads.slice(0, step, step + 1).view({37, 5});
      adamw.step(slots, 1e-2);
      CHECK(test::near(slots[0].value, want.slice(0, step, step + 1).view({37, 5}),
                       {tolerance, tolerance}));
    }
    CHECK(test::near(slots[0].find_state("m"), golden.values("out.exp_avg"),
                     {tolerance, tolerance / 100}));
    CHECK(test::near(slots[0].find_state("v"), golden.values("out.exp_avg_sq"),
                     {tolerance, tolerance / 100}));
    CHECK(adamw.steps() == 5);
  }
}

TEST_CASE("five steps are those of PyTorch") {
  follow_golden("adamw", 0, DType::f32, 2e-6);
  follow_golden("adamw_decay", 0.1, DType::f32, 2e-6);
  follow_golden("adamw", 0, DType::f64, 1e-14);
  follow_golden("adamw_decay", 0.1, DType::f64, 1e-14);
}

TEST_CASE("threads and cuts of a parameter change no bit") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto one = Runtime::create({.threads = 1});
    const auto two = Runtime::create({.threads = 2});
    std::vector<Slot> whole{slot_like(one, {703, 149}, dtype, 1), slot_like(one, {5}, dtype, 2)};
    std::vector<Slot> threaded{copy_of(whole[0], two), copy_of(whole[1], two)};
    std::vector<Slot> pieces;
    for (const auto& [begin, end] : {std::pair(0, 1), {1, 300}, {300, 300}, {300, 703}})
      pieces.push_back(cut(copy_of(whole[0], two), begin, end));
    AdamW a(kBetas), b(kBetas), c(kBetas);
    for (int step = 0; step < 3; ++step) {
      a.step(whole, 1e-2, 0.37);
      b.step(threaded, 1e-2, 0.37);
      c.step(pieces, 1e-2, 0.37);
    }
    CHECK(same_bits(threaded[0].value.to_vector<double>(), whole[0].value.to_vector<double>()));
    CHECK(same_bits(threaded[1].value.to_vector<double>(), whole[1].value.to_vector<double>()));
    CHECK(same_bits(threaded[0].find_state("v").to_vector<double>(),
                    whole[0].find_state("v").to_vector<double>()));
    std::vector<double> joined;
    for (const Slot& piece : pieces)
      for (const double x : piece.value.to_vector<double>()) joined.push_back(x);
    CHECK(same_bits(joined, whole[0].value.to_vector<double>()));
  }
}

TEST_CASE("an element's bits do not depend on where its part begins, at any instruction set") {
  for (const Isa isa : all_isas()) {
    const auto rt = Runtime::create({.isa = isa});
    std::vector<Slot> whole{slot_like(rt, {997}, DType::f32, 1)};
    std::vector<Slot> pieces;
    for (int64_t begin = 0, n = 1; begin < 997; begin += n, n = n % 37 + 1)
      pieces.push_back(cut(copy_of(whole[0], rt), begin, std::min<int64_t>(997, begin + n)));
    AdamW a(kBetas), b(kBetas);
    for (int step = 0; step < 3; ++step) {
      a.step(whole, 1e-2, 0.37);
      b.step(pieces, 1e-2, 0.37);
    }
    for (const char* state : {"m", "v"}) {
      INFO(name_of(isa) << ' ' << state);
      std::vector<double> joined;
      for (const Slot& piece : pieces)
        for (const double x : piece.find_state(state).to_vector<double>()) joined.push_back(x);
      CHECK(same_bits(joined, whole[0].find_state(state).to_vector<double>()));
    }
  }
}

const AdamWOptions kBf16Moments{
    .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .moments = DType::bf16, .seed = 5};

TEST_CASE("a bf16 or f16 value is the f32 run rounded") {
  for (const Isa isa : all_isas()) {
    for (const auto& [half, options] : {std::pair(DType::bf16, kBetas),
                                        {DType::f16, kBetas},
                                        {DType::bf16, kBf16Moments},
                                        {DType::f16, kBf16Moments}}) {
      const auto rt = Runtime::create({.isa = isa});
      std::vector<Slot> narrow{slot_like(rt, {13, 7}, half, 3)};
      std::vector<Slot> wide{copy_of(narrow[0], rt)};
      wide[0].value = narrow[0].value.to(DType::f32);
      AdamW a(options), b(options);
      for (int step = 0; step < 10; ++step) {
        a.step(narrow, 1e-3);
        b.step(wide, 1e-3);
      }
      CHECK(same_bits(narrow[0].find_state("master").to_vector<double>(),
                      wide[0].value.to_vector<double>()));
      CHECK(same_bits(narrow[0].value.to_vector<double>(),
                      wide[0].value.to(half).to_vector<double>()));
    }
  }
}

TEST_CASE("bf16 moments: cuts, threads and instruction sets round alike, and state is halved") {
  std::vector<double> first;
  for (const Isa isa : all_isas())
    for (const int threads : {1, 2}) {
      INFO(name_of(isa) << ' ' << threads);
      const auto rt = Runtime::create({.threads = threads, .isa = isa});
      std::vector<Slot> whole{slot_like(rt, {199, 331}, DType::f32, 1)};
      whole[0].name = "w";
      std::vector<Slot> pieces;
      for (int64_t begin = 0, n = 1; begin < 199; begin += n, n = n % 37 + 1) {
        pieces.push_back(cut(copy_of(whole[0], rt), begin, std::min<int64_t>(199, begin + n)));
        pieces.back().name = "w";
        pieces.back().place.first = begin * 331;
      }
      // Of two columns each rank has one.
      std::vector<Slot> columns;
      for (int c = 0; c < 2; ++c) {
        Slot& slot = columns.emplace_back();
        slot.name = "w";
        const int64_t from = c == 0 ? 0 : 165, to = c == 0 ? 165 : 331;
        slot.value = whole[0].value.slice(1, from, to).contiguous().clone();
        slot.grad = whole[0].grad.slice(1, from, to).contiguous();
        slot.place = {.first = from, .run = to - from, .stride = 331};
      }
      AdamW a(kBf16Moments), b(kBf16Moments), c(kBf16Moments);
      for (int step = 0; step < 3; ++step) {
        a.step(whole, 1e-2, 0.37);
        b.step(pieces, 1e-2, 0.37);
        c.step(columns, 1e-2, 0.37);
      }
      for (const char* state : {"m", "v"}) {
        const auto all = whole[0].find_state(state).to_vector<double>();
        CHECK(whole[0].find_state(state).dtype() == DType::bf16);
        std::vector<double> joined;
        for (const Slot& piece : pieces)
          for (const double x : piece.find_state(state).to_vector<double>()) joined.push_back(x);
        CHECK(same_bits(joined, all));
        CHECK(same_bits(columns[1].find_state(state).to_vector<double>(),
                        whole[0].find_state(state).slice(1, 165, 331).to_vector<double>()));
      }
      const auto values = whole[0].value.to_vector<double>();
      if (first.empty()) first = values;
      CHECK(test::near(values, first, {1e-3, 1e-3}));
      const auto bytes =
          rt->allocator().live_by_category()[static_cast<size_t>(Category::optimizer)];
      CHECK(bytes < 3 * 4 * 199 * 331 + 512 * 300);  // three sets of 2 + 2 bytes an element
    }
}

TEST_CASE("bf16 moments are right on average") {
  const auto rt = Runtime::create();
  const int64_t n = 1 << 16;
  std::vector<Slot> slots(1);
  slots[0].name = "w";
  slots[0].value = Tensor::zeros(rt, {n});
  slots[0].grad = Tensor::full(rt, {n}, 1.003);  // between two bf16 numbers, as are 0.1 of it
  AdamW adamw(kBf16Moments);
  adamw.step(slots, 1e-3);
  const auto m = slots[0].find_state("m").to_vector<double>();
  double mean = 0;
  for (const double x : m) mean += x / static_cast<double>(n);
  const double exact = 0.1 * 1.003, ulp = std::exp2(-11);  // of bf16 in [1/16, 1/8)
  CHECK(std::abs(mean - exact) < 5 * ulp / 2 / std::sqrt(static_cast<double>(n)));
  for (const double x : m) CHECK(std::abs(x - exact) < ulp);
  // Rounding to nearest would stand still: a change below half a unit adds up here.
  slots[0].grad.fill(exact * 1.01);
  const AdamWOptions slow{.beta1 = 0.999, .beta2 = 0.999, .moments = DType::bf16, .seed = 5};
  AdamW many(slow);
  slots[0].state.clear();
  for (int i = 0; i < 200; ++i) many.step(slots, 0);
  double sum = 0;
  for (const double x : slots[0].find_state("m").to_vector<double>())
    sum += x / static_cast<double>(n);
  CHECK(sum == Approx(exact * 1.01 * (1 - std::pow(0.999, 200))).epsilon(1e-3));
}

TEST_CASE("moments and masters count as optimizer memory, and appear once") {
  const auto rt = Runtime::create();
  std::vector<Slot> slots{slot_like(rt, {64, 64}, DType::bf16, 4)};
  const auto before = rt->allocator().live_by_category();
  AdamW adamw;
  adamw.step(slots, 1e-3);
  const auto after = rt->allocator().live_by_category();
  const auto optimizer = static_cast<size_t>(Category::optimizer);
  CHECK(after[optimizer] - before[optimizer] == 3 * 4 * 64 * 64);
  adamw.step(slots, 1e-3);
  CHECK(rt->allocator().live_by_category() == after);
  CHECK(slots[0].state.size() == 3);
}

TEST_CASE("scalars, empty parameters and slots without a gradient") {
  const auto rt = Runtime::create({.threads = 2});
  std::vector<Slot> slots{slot_like(rt, {}, DType::f32, 5), slot_like(rt, {0, 4}, DType::f32, 6),
                          slot_like(rt, {3}, DType::f32, 7)};
  slots[2].grad = {};
  slots[0].weight_decay = 0;
  const double scalar = slots[0].value.item();
  const auto frozen = slots[2].value.to_vector<float>();
  const uint64_t version = slots[0].value.storage()->version();
  AdamW adamw;
  adamw.step(slots, 1e-2);
  CHECK(slots[0].value.item() == Approx(scalar - std::copysign(1e-2, slots[0].grad.item())));
  CHECK(slots[0].value.storage()->version() > version);
  CHECK(slots[2].value.to_vector<float>() == frozen);
  CHECK(slots[2].state.empty());
  std::vector<Slot> none;
  adamw.step(none, 1e-2);
}

TEST_CASE("each slot has its own decay and rate") {
  const auto rt = Runtime::create();
  std::vector<Slot> slots;
  for (int i = 0; i < 3; ++i) {
    slots.push_back(slot_like(rt, {2}, DType::f64, 8));
    slots[i].value.fill(1);
    slots[i].grad.fill(0);
    slots[i].weight_decay = i == 0 ? 0 : 0.5;
  }
  slots[2].lr_scale = 0.1;
  AdamW adamw;
  adamw.step(slots, 0.1);
  CHECK(slots[0].value.to_vector<double>()[1] == 1);
  CHECK(slots[1].value.to_vector<double>()[1] == Approx(0.95).epsilon(1e-15));
  CHECK(slots[2].value.to_vector<double>()[1] == Approx(0.995).epsilon(1e-15));
}

TEST_CASE("a gradient that is not finite is named, never stepped with in silence") {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const int64_t at : {0, 15, 16, 40}) {
      const auto rt = Runtime::create();
      std::vector<Slot> slots{slot_like(rt, {41}, DType::f32, 9),
                              slot_like(rt, {41}, DType::bf16, 9)};
      slots[1].name = "the.bad.one";
      slots[1].grad.slice(0, at, at + 1).fill(bad);
      AdamW adamw;
      CHECK_THROWS_WITH(adamw.step(slots, 1e-2), Contains("not finite") && Contains("the.bad.one"));
    }
  }
  const auto rt = Runtime::create();
  std::vector<Slot> slots{slot_like(rt, {3}, DType::f32, 9)};
  const auto before = slots[0].value.to_vector<float>();
  AdamW adamw;
  CHECK_THROWS_WITH(adamw.step(slots, 1e-2, NAN), Contains("no step was made"));
  CHECK_THROWS_WITH(adamw.step(slots, INFINITY), Contains("no step was made"));
  CHECK(slots[0].value.to_vector<float>() == before);
  CHECK(adamw.steps() == 0);
}

TEST_CASE("wrong slots are refused by name") {
  const auto rt = Runtime::create();
  AdamW adamw;
  std::vector<Slot> slots{slot_like(rt, {3}, DType::f32, 9)};
  slots[0].name = "wte.weight";
  slots[0].grad = Tensor::zeros(rt, {4});
  CHECK_THROWS_WITH(adamw.step(slots, 1), Contains("wte.weight") && Contains("[4]"));
  slots[0].grad = Tensor::zeros(rt, {3}, DType::bf16);
  CHECK_THROWS_WITH(adamw.step(slots, 1), Contains("bf16"));
  slots[0].value = slots[0].grad = Tensor::zeros(rt, {3, 2}).transpose(0, 1);
  slots[0].state.clear();
  CHECK_THROWS_WITH(adamw.step(slots, 1), Contains("contiguous"));
  slots[0].value = slots[0].grad = Tensor::zeros(rt, {3}, DType::i32);
  CHECK_THROWS_WITH(adamw.step(slots, 1), Contains("i32"));
  CHECK_THROWS_WITH(AdamW({.beta1 = 1}), Contains("beta"));
}

TEST_CASE("on meta the state is counted and nothing runs") {
  const auto rt = Runtime::create({.device = kMeta});
  std::vector<Slot> slots(1);
  slots[0].value = Tensor::empty(rt, {100, 100}, DType::bf16);
  slots[0].grad = Tensor::empty(rt, {100, 100});
  AdamW adamw;
  adamw.step(slots, 1e-3);
  const auto live = rt->allocator().live_by_category()[static_cast<size_t>(Category::optimizer)];
  CHECK(live == 3 * Allocator::rounded(40000));
}

}  // namespace
}  // namespace sherd
