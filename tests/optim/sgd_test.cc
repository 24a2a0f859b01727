#include "optim/sgd.h"

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

void follow_golden(const std::string& name, const SgdOptions& options, DType dtype,
                   double tolerance) {
  const test::Golden golden(name);
  for (const Isa isa : all_isas()) {
    INFO(name << ' ' << name_of(isa) << ' ' << dtype);
    const auto rt = Runtime::create({.isa = isa});
    Sgd sgd(options);
    std::vector<Slot> slots(1);
    slots[0].value = golden.tensor(rt, "in.param", dtype).clone();
    const Tensor grads = golden.tensor(rt, "in.grads", dtype);
    const Tensor want = golden.tensor(rt, "out.param");
    for (int64_t step = 0; step < 5; ++step) {
      slots[0].grad = grads.slice(0, step, step + 1).view({37, 5});
      sgd.step(slots, 1e-2);
      CHECK(test::near(slots[0].value, want.slice(0, step, step + 1).view({37, 5}),
                       {tolerance, tolerance}));
    }
    if (options.momentum == 0) {
      CHECK(slots[0].state.empty());
    } else {
      CHECK(test::near(slots[0].find_state("momentum"), golden.values("out.momentum_buffer"),
                       {tolerance, tolerance}));
    }
  }
}

TEST_CASE("five steps are those of PyTorch") {
  for (const auto& [dtype, tolerance] : {std::pair(DType::f32, 1e-6), {DType::f64, 1e-14}}) {
    follow_golden("sgd", {}, dtype, tolerance);
    follow_golden("sgd_momentum", {.momentum = 0.9}, dtype, tolerance);
    follow_golden("sgd_nesterov", {.momentum = 0.9, .nesterov = true}, dtype, tolerance);
  }
}

TEST_CASE("weight decay pulls through the gradient") {
  const auto rt = Runtime::create();
  std::vector<Slot> slots{slot_like(rt, {1}, DType::f64, 1)};
  slots[0].value.fill(2);
  slots[0].grad.fill(3);
  slots[0].weight_decay = 0.5;
  Sgd sgd;
  sgd.step(slots, 0.1, 2);
  CHECK(slots[0].value.item() == Approx(2 - 0.1 * (3 * 2 + 0.5 * 2)).epsilon(1e-15));
}

TEST_CASE("threads and cuts give the same bits") {
  for (const double momentum : {0.0, 0.9}) {
    const auto one = Runtime::create();
    const auto two = Runtime::create({.threads = 2});
    std::vector<Slot> whole{slot_like(one, {401, 151}, DType::f32, 1)};
    std::vector<Slot> pieces;
    for (int64_t row = 0; row < 401; ++row)
      pieces.push_back(cut(copy_of(whole[0], two), row, row + 1));
    Sgd a({momentum}), b({momentum});
    for (int step = 0; step < 3; ++step) {
      a.step(whole, 1e-2);
      b.step(pieces, 1e-2);
    }
    std::vector<double> joined;
    for (const Slot& piece : pieces)
      for (const double x : piece.value.to_vector<double>()) joined.push_back(x);
    CHECK(same_bits(joined, whole[0].value.to_vector<double>()));
  }
}

TEST_CASE("narrow values follow an f32 master") {
  for (const Isa isa : all_isas())
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const double momentum : {0.0, 0.9}) {
        INFO(name_of(isa) << ' ' << dtype << ' ' << momentum);
        const auto rt = Runtime::create({.isa = isa});
        std::vector<Slot> narrow{slot_like(rt, {33}, dtype, 2)};
        std::vector<Slot> wide{copy_of(narrow[0], rt)};
        wide[0].value = narrow[0].value.to(DType::f32);
        Sgd a({momentum}), b({momentum});
        for (int step = 0; step < 3; ++step) {
          a.step(narrow, 1e-2);
          b.step(wide, 1e-2);
        }
        CHECK(same_bits(narrow[0].value.to_vector<double>(),
                        wide[0].value.to(dtype).to_vector<double>()));
      }
}

TEST_CASE("a gradient that is not finite is named") {
  const auto rt = Runtime::create();
  std::vector<Slot> slots{slot_like(rt, {41}, DType::f32, 9)};
  slots[0].grad.slice(0, 40, 41).fill(INFINITY);
  Sgd sgd;
  CHECK_THROWS_WITH(sgd.step(slots, 1e-2), Contains("not finite") && Contains("slot.9"));
  CHECK_THROWS_WITH(Sgd({.momentum = -1}), Contains("momentum"));
  CHECK_THROWS_WITH(Sgd({.nesterov = true}), Contains("momentum above 0"));
}

}  // namespace
}  // namespace sherd
