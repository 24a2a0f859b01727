#include "optim/lion.h"

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
using test::same_bits;
using test::slot_like;

void follow_golden(DType dtype, double tolerance) {
  const test::Golden golden("lion");
  for (const Isa isa : all_isas()) {
    INFO(name_of(isa) << ' ' << dtype);
    const auto rt = Runtime::create({.isa = isa});
    Lion lion;
    std::vector<Slot> slots(1);
    slots[0].value = golden.tensor(rt, "in.param", dtype).clone();
    slots[0].weight_decay = 0.1;
    const Tensor grads = golden.tensor(rt, "in.grads", dtype);
    const Tensor want = golden.tensor(rt, "out.param");
    for (int64_t step = 0; step < 5; ++step) {
      slots[0].grad = grads.slice(0, step, step + 1).view({37, 5});
      lion.step(slots, 1e-2);
      CHECK(test::near(slots[0].value, want.slice(0, step, step + 1).view({37, 5}),
                       {tolerance, tolerance}));
    }
    CHECK(test::near(slots[0].find_state("m"), golden.values("out.exp_avg"),
                     {tolerance, tolerance / 100}));
  }
}

TEST_CASE("five steps are those of the paper's program in PyTorch") {
  follow_golden(DType::f32, 2e-6);
  follow_golden(DType::f64, 1e-14);
}

TEST_CASE("cuts of a parameter change no bit, at any instruction set") {
  for (const Isa isa : all_isas()) {
    INFO(name_of(isa));
    const auto rt = Runtime::create({.threads = 2, .isa = isa});
    std::vector<Slot> whole{slot_like(rt, {997}, DType::f32, 1)};
    std::vector<Slot> pieces;
    for (int64_t begin = 0, n = 1; begin < 997; begin += n, n = n % 37 + 1)
      pieces.push_back(cut(copy_of(whole[0], rt), begin, std::min<int64_t>(997, begin + n)));
    Lion a, b;
    for (int step = 0; step < 3; ++step) {
      a.step(whole, 1e-2, 0.37);
      b.step(pieces, 1e-2, 0.37);
    }
    std::vector<double> joined;
    for (const Slot& piece : pieces)
      for (const double x : piece.value.to_vector<double>()) joined.push_back(x);
    CHECK(same_bits(joined, whole[0].value.to_vector<double>()));
  }
}

TEST_CASE("narrow values follow an f32 master, and there is one moment") {
  for (const Isa isa : all_isas())
    for (const DType dtype : {DType::bf16, DType::f16}) {
      INFO(name_of(isa) << ' ' << dtype);
      const auto rt = Runtime::create({.isa = isa});
      std::vector<Slot> narrow{slot_like(rt, {33}, dtype, 2)};
      std::vector<Slot> wide{copy_of(narrow[0], rt)};
      wide[0].value = narrow[0].value.to(DType::f32);
      Lion a, b;
      for (int step = 0; step < 3; ++step) {
        a.step(narrow, 1e-2);
        b.step(wide, 1e-2);
      }
      CHECK(same_bits(narrow[0].value.to_vector<double>(),
                      wide[0].value.to(dtype).to_vector<double>()));
      CHECK(wide[0].state.size() == 1);
      CHECK(narrow[0].state.size() == 2);
    }
}

TEST_CASE("without a direction there is no step but the decay") {
  const auto rt = Runtime::create();
  std::vector<Slot> slots{slot_like(rt, {3}, DType::f64, 1)};
  slots[0].value.fill(2);
  slots[0].grad.fill(0);
  slots[0].weight_decay = 0.5;
  Lion lion;
  lion.step(slots, 0.1);
  CHECK(slots[0].value.to_vector<double>()[2] == Approx(2 * (1 - 0.1 * 0.5)).epsilon(1e-15));
}

TEST_CASE("a gradient that is not finite is named; betas are checked") {
  const auto rt = Runtime::create();
  for (const float bad : {NAN, INFINITY}) {
    std::vector<Slot> slots{slot_like(rt, {41}, DType::f32, 9)};
    slots[0].grad.slice(0, 40, 41).fill(bad);
    Lion lion;
    CHECK_THROWS_WITH(lion.step(slots, 1e-2), Contains("not finite") && Contains("slot.9"));
  }
  CHECK_THROWS_WITH(Lion({.beta2 = 1}), Contains("betas"));
}

}  // namespace
}  // namespace sherd
