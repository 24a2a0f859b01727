#include "tensor/kernels/vec_math.h"

#include <cmath>
#include <limits>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

/// Worst |got - want| ÷ max(|want|, 0.01), in units of T's epsilon; beyond any bound when not
/// finite.
template <class T, class F, class G>
double worst_error(double low, double high, double step, const F& function, const G& reference) {
  double worst = 0;
  for (double at = low; at < high; at += step) {
    const T x = static_cast<T>(at);
    const double want = reference(static_cast<double>(x));
    const double got = function(splat(x))[1];
    const double error = std::abs(got - want) / std::max(std::abs(want), 0.01);
    worst = std::max(worst, std::isfinite(error) ? error : 1e30);
  }
  return worst / static_cast<double>(std::numeric_limits<T>::epsilon());
}

TEST_CASE("exp and log are right to two units in the last place") {
  const auto e32 = [](F32x16 v) { return exp(v); };
  const auto e64 = [](F64x8 v) { return exp(v); };
  const auto l32 = [](F32x16 v) { return log(v); };
  const auto l64 = [](F64x8 v) { return log(v); };
  const auto exp_of = [](double x) { return std::exp(x); };
  const auto log_of = [](double x) { return std::log(x); };
  CHECK(worst_error<float>(-4, 80, 0.0013, e32, exp_of) < 2);
  CHECK(worst_error<double>(-4, 700, 0.013, e64, exp_of) < 3);
  CHECK(worst_error<float>(1e-3, 9, 0.00013, l32, log_of) < 2);
  CHECK(worst_error<float>(9, 1e9, 1e5, l32, log_of) < 2);
  CHECK(worst_error<double>(1e-3, 9, 0.0013, l64, log_of) < 3);
  CHECK(worst_error<double>(9, 1e9, 1e6, l64, log_of) < 3);
  for (float x = 4; x < 87; x += 0.37f)
    CHECK(exp(splat(-x))[2] * std::exp(static_cast<double>(x)) == Approx(1).epsilon(2e-7));
  for (double x = 4; x < 708; x += 3.7)
    CHECK(exp(splat(-x))[2] * std::exp(x) == Approx(1).epsilon(1e-15).margin(1e-15));
}

TEST_CASE("exp and log at the ends of the range") {
  const float inf = HUGE_VALF;
  CHECK(exp(splat(0.0f))[0] == 1);
  CHECK(exp(splat(-inf))[0] == 0);
  CHECK(exp(splat(-88.0f))[0] == 0);  // subnormal, flushed
  CHECK(exp(splat(-87.3f))[0] == Approx(std::exp(-87.3f)));
  CHECK(exp(splat(88.7228f))[0] == Approx(std::exp(88.7228f)));
  CHECK(exp(splat(88.73f))[0] == inf);
  CHECK(exp(splat(inf))[0] == inf);
  CHECK(std::isnan(exp(splat(std::nanf("")))[0]));
  CHECK(exp(splat(-709.0))[0] == 0);
  CHECK(exp(splat(709.78))[0] == Approx(std::exp(709.78)));
  CHECK(exp(splat(709.79))[0] == HUGE_VAL);
  CHECK(std::isnan(exp(splat(std::nan("")))[0]));
  CHECK(log(splat(1.0f))[0] == 0);
  CHECK(log(splat(0.0f))[0] == -inf);
  CHECK(log(splat(inf))[0] == inf);
  CHECK(std::isnan(log(splat(-1.0f))[0]));
  CHECK(log(splat(1.0))[0] == 0);
  CHECK(log(splat(0.0))[0] == -HUGE_VAL);
  CHECK(log(splat(HUGE_VAL))[0] == HUGE_VAL);
  CHECK(std::isnan(log(splat(-1.0))[0]));
}

/// `other` in all lanes but one.
template <class T>
Vec<T> with_lane(T other, int at, T x) {
  T lanes[kLanes<T>];
  store(lanes, splat(other));
  lanes[at] = x;
  return load(lanes);
}

TEST_CASE("max takes the largest lane wherever it is") {
  for (int at = 0; at < 16; ++at) {
    const F32x16 v = with_lane(-5.0f, at, -2.0f);
    CHECK(max(v) == -2);
    CHECK(max(v, splat(-3.0f))[at] == -2);
    CHECK(max(splat(-3.0f), v)[(at + 1) % 16] == -3);
  }
  for (int at = 0; at < 8; ++at) {
    const F64x8 v = with_lane(-5.0, at, -2.0);
    CHECK(max(v) == -2);
    CHECK(max(v, splat(-3.0))[at] == -2);
  }
}

}  // namespace
}  // namespace sherd
