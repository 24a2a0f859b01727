#include "optim/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Limits = std::numeric_limits<double>;

double exact(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double x : terms) sum.add(x);
  return sum.value();
}

TEST_CASE("one term comes back as it is") {
  CHECK(ExactSum().value() == 0);
  for (const double x : {0.0, 1.0, 0.1, 3.0, 1e-300, 1e300, Limits::min(), Limits::max(),
                         Limits::denorm_min(), 7 * Limits::denorm_min(), 0x1.fffffffffffffp-1022})
    CHECK(exact({x}) == x);
  for (int e = -1074; e < 1024; ++e) CHECK(exact({std::ldexp(1.0, e)}) == std::ldexp(1.0, e));
}

TEST_CASE("what f64 would lose is kept, and rounded once to nearest even") {
  CHECK(exact({1e300, 1, 1e-300, 1}) == 1e300);
  CHECK(exact({1, 0x1p-53}) == 1);                       // a tie, to even
  CHECK(exact({1 + 0x1p-52, 0x1p-53}) == 1 + 0x1p-51);   // a tie, to even
  CHECK(exact({1, 0x1p-53, 0x1p-1074}) == 1 + 0x1p-52);  // just above the tie
  CHECK(exact({1, 0x1p-54, 0x1p-54, 0x1p-54}) == 1 + 0x1p-52);
  CHECK(exact(std::vector<double>(1024, 0x1p-53 / 512)) == 0x1p-52);
  CHECK(exact({0x1p-1074, 0x1p-1074}) == 0x1p-1073);
  CHECK(exact({Limits::max(), Limits::max()}) == Limits::infinity());
}

TEST_CASE("the order of terms and how they are spread change nothing") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(-80, 80);
  std::vector<double> terms(5000);
  for (double& x : terms) x = std::ldexp(mantissa(random), exponent(random));
  const double once = exact(terms);
  long double reference = 0;
  std::sort(terms.begin(), terms.end());
  for (const double x : terms) reference += x;
  CHECK(once == Approx(static_cast<double>(reference)).epsilon(1e-15));
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::shuffle(terms.begin(), terms.end(), random);
    CHECK(exact(terms) == once);
    std::vector<ExactSum> parts(3);
    for (size_t i = 0; i < terms.size(); ++i) parts[i % 3].add(terms[i]);
    ExactSum joined = parts[2];
    joined.add(parts[0]);
    joined.add(parts[1]);
    CHECK(joined.value() == once);
    // The same through words, as ranks exchange them.
    for (int part : {1, 2})
      for (int i = 0; i < ExactSum::kWords; ++i)
        parts[0].words()[i] += parts[static_cast<size_t>(part)].words()[i];
    CHECK(parts[0].value() == once);
  }
}

TEST_CASE("many equal terms carry") {
  ExactSum sum;
  for (int i = 0; i < 100000; ++i) sum.add(Limits::max() / 0x1p20);
  CHECK(sum.value() == Limits::max() / 0x1p20 * 100000);
  ExactSum doubled;
  doubled.add(1 + 0x1p-52);
  for (int i = 0; i < 60; ++i) doubled.add(ExactSum(doubled));
  CHECK(doubled.value() == std::ldexp(1 + 0x1p-52, 60));
}

TEST_CASE("a term that is not finite makes NaN and is passed on") {
  for (const double bad : {NAN, INFINITY}) {
    CHECK(std::isnan(exact({1, bad, 2})));
    ExactSum a, b;
    a.add(1);
    b.add(bad);
    a.add(b);
    CHECK(std::isnan(a.value()));
  }
}

}  // namespace
}  // namespace sherd
