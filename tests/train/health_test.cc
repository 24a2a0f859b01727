#include "train/health.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

StepMetrics with_norm(double norm) {
  StepMetrics m;
  m.grad_norm = norm;
  return m;
}

TEST_CASE("a gradient norm of more than five times the median is remarked, once enough was seen") {
  Health health;
  CHECK_FALSE(health.remark(with_norm(1)));
  CHECK_FALSE(health.remark(with_norm(100)));  // too early to tell
  for (int i = 0; i < 40; ++i) CHECK_FALSE(health.remark(with_norm(1 + 0.01 * i)));
  CHECK_FALSE(health.remark(with_norm(5)));
  CHECK(health.remark(with_norm(12)) ==
        "gradient norm 12 is 10.0 times the median of the last 43 steps");
  // A new level becomes usual.
  for (int i = 0; i < 64; ++i) health.remark(with_norm(12));
  CHECK_FALSE(health.remark(with_norm(12)));
}

TEST_CASE("a skipped step says why, and its norm does not count") {
  Health health;
  for (int i = 0; i < 20; ++i) health.remark(with_norm(1));
  StepMetrics skipped;
  skipped.skipped = true;
  skipped.loss_scale = 65536;
  for (int i = 0; i < 64; ++i)
    CHECK(health.remark(skipped) ==
          "skipped: gradients overflowed at loss scale 65536; it is halved");
  CHECK(health.remark(with_norm(9)));
}

}  // namespace
}  // namespace sherd
