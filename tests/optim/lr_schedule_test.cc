#include "optim/lr_schedule.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;

TEST_CASE("warm-up rises to the peak in a line, for every shape") {
  for (const LrShape shape : {LrShape::constant, LrShape::linear, LrShape::cosine, LrShape::wsd}) {
    const LrSchedule schedule{.shape = shape, .lr = 1, .min_lr = 0.1, .warmup = 3, .steps = 13};
    CHECK(schedule.at(0) == 0.25);
    CHECK(schedule.at(1) == 0.5);
    CHECK(schedule.at(2) == 0.75);
    CHECK(schedule.at(3) == 1);
  }
}

TEST_CASE("then constant stays, linear and cosine fall to min_lr") {
  LrSchedule schedule{.lr = 1, .min_lr = 0.2, .warmup = 2, .steps = 12};
  CHECK(schedule.at(11) == 1);
  CHECK(schedule.at(1000) == 1);
  schedule.shape = LrShape::linear;
  CHECK(schedule.at(7) == Approx(0.6).epsilon(1e-15));
  CHECK(schedule.at(11) == Approx(0.28).epsilon(1e-15));
  CHECK(schedule.at(12) == 0.2);
  schedule.shape = LrShape::cosine;
  CHECK(schedule.at(7) == Approx(0.6).epsilon(1e-15));
  CHECK(schedule.at(4) == Approx(0.2 + 0.4 * (1 + std::cos(0.2 * 3.14159265358979323846))));
  CHECK(schedule.at(12) == 0.2);
  CHECK(schedule.at(1000) == 0.2);
}

TEST_CASE("wsd stays at the peak, and falls in its last steps along a line") {
  LrSchedule schedule{
      .shape = LrShape::wsd, .lr = 1, .min_lr = 0.2, .warmup = 2, .steps = 12, .decay = 4};
  for (int64_t step = 2; step <= 8; ++step) CHECK(schedule.at(step) == 1);
  CHECK(schedule.at(9) == Approx(0.8).epsilon(1e-15));
  CHECK(schedule.at(11) == Approx(0.4).epsilon(1e-15));
  CHECK(schedule.at(12) == 0.2);
  schedule.decay = 0;
  CHECK(schedule.at(11) == 1);
  CHECK(schedule.at(12) == 0.2);
  schedule.decay = 100;  // no longer than what warm-up leaves
  CHECK(schedule.at(2) == 1);
  CHECK(schedule.at(7) == Approx(0.6).epsilon(1e-15));
}

TEST_CASE("odd lengths") {
  const LrSchedule all_warmup{
      .shape = LrShape::cosine, .lr = 1, .min_lr = 0.5, .warmup = 5, .steps = 5};
  CHECK(all_warmup.at(4) == Approx(5.0 / 6));
  CHECK(all_warmup.at(5) == 0.5);
  CHECK(LrSchedule{.shape = LrShape::cosine, .lr = 1, .steps = 1}.at(0) == 1);
}

TEST_CASE("names") {
  CHECK(parse_lr_shape("cosine") == LrShape::cosine);
  CHECK(parse_lr_shape("wsd") == LrShape::wsd);
  CHECK_THROWS_WITH(parse_lr_shape("cosin"), Contains("cosin") && Contains("constant"));
}

}  // namespace
}  // namespace sherd
