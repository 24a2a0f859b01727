#include "optim/loss_scale.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;

TEST_CASE("a dynamic scale doubles after a window without overflow, and halves at one") {
  LossScale scale({.start = 8, .dynamic = true, .window = 3, .floor = 2});
  CHECK(scale.value() == 8);
  scale.step_taken();
  scale.step_taken();
  CHECK(scale.value() == 8);
  scale.step_taken();
  CHECK(scale.value() == 16);
  scale.step_taken();
  scale.step_taken();
  scale.step_skipped();  // the window starts anew
  CHECK(scale.value() == 8);
  scale.step_taken();
  scale.step_taken();
  CHECK(scale.value() == 8);
  scale.step_taken();
  CHECK(scale.value() == 16);
}

TEST_CASE("it ends at the floor, where nothing is left to try, and at 2^32") {
  LossScale scale({.start = 4, .dynamic = true, .window = 1, .floor = 2});
  CHECK(scale.can_back_off());
  scale.step_skipped();
  CHECK(scale.value() == 2);
  CHECK_FALSE(scale.can_back_off());
  for (int i = 0; i < 50; ++i) scale.step_taken();
  CHECK(scale.value() == 0x1p32);
}

TEST_CASE("a fixed scale stays, and backs off from nothing") {
  LossScale scale({.start = 1024});
  for (int i = 0; i < 5000; ++i) scale.step_taken();
  CHECK(scale.value() == 1024);
  CHECK_FALSE(scale.can_back_off());
}

TEST_CASE("a restored scale goes on as the one that was saved") {
  LossScale a({.start = 8, .dynamic = true, .window = 3}), b({.dynamic = true, .window = 3});
  a.step_taken();
  a.step_taken();
  b.set_state(a.state());
  a.step_taken();
  b.step_taken();
  CHECK(a.state() == b.state());
  CHECK(b.value() == 16);
}

TEST_CASE("what makes no sense is refused") {
  CHECK_THROWS_WITH(LossScale({.start = 3}), Contains("powers of two") && Contains("3"));
  CHECK_THROWS_WITH(LossScale({.start = 2, .floor = 4}), Contains("floor"));
  CHECK_THROWS_WITH(LossScale({.window = 0}), Contains("window"));
}

}  // namespace
}  // namespace sherd
