// Every instruction set's functions of vec_math.h against libm in f64 (x87 for f64), over all
// exponents. The largest errors are printed: run with -s.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/tensor/vec_math_probe_kernels.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using kernels::Probe;

struct Row {
  const char* name;
  Probe f;
  long double (*reference)(long double);
  double low;
  double high;
  double ulps32;
  double ulps64;
};

long double cdf(long double x) { return erfcl(-x / sqrtl(2.0L)) / 2; }
long double density(long double x) { return expl(-x * x / 2) / sqrtl(2 * acosl(-1.0L)); }

// Outside [low, high] the cases below say what is wanted.
const Row kRows[] = {
    {"exp", Probe::exp, expl, -87.3, 88.7, 1.1, 1.1},
    {"log", Probe::log, logl, 1.2e-38, 3.4e38, 2, 2},
    {"tanh", Probe::tanh, tanhl, -1e30, 1e30, 1.5, 2},
    {"erf", Probe::erf, erfl, -1e30, 1e30, 1.5, 1},
    {"sqrt", Probe::sqrt, sqrtl, 0, 3.4e38, 0.51, 0.51},
    {"reciprocal", Probe::reciprocal, [](long double x) { return 1 / x; }, 1, 2, 1, 0.51},
    // Relative errors grow with x² in the tail; absolute ones do not matter there.
    {"normal_cdf", Probe::normal_cdf, cdf, -12, 1e30, 90, 250},
    {"normal_density", Probe::normal_density, density, -12, 12, 90, 90},
};

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) all.push_back(static_cast<Isa>(i));
  return all;
}

/// Values of every exponent that lie in [low, high], both signs, a multiple of 16 of them.
template <class T>
std::vector<T> samples(double low, double high) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kStep = sizeof(T) == 4 ? Bits{65521} : static_cast<Bits>(0x100000000f1b3c51);
  std::vector<T> all;
  for (Bits bits = 0; bits < static_cast<Bits>(-kStep); bits += kStep) {
    T x;
    std::memcpy(&x, &bits, sizeof x);
    if (x >= static_cast<T>(low) && x <= static_cast<T>(high)) all.push_back(x);
  }
  const double from = std::max(low, -20.0);
  const double to = std::min(high, 20.0);
  for (int i = 0; i <= 20000; ++i) all.push_back(static_cast<T>(from + (to - from) * i / 20000));
  while (all.size() % 16 != 0) all.push_back(all.back());
  return all;
}

template <class T>
void check_row(const Row& row, double allowed) {
  const auto x = samples<T>(row.low, row.high);
  std::vector<T> y(x.size());
  std::vector<long double> want;
  for (const T v : x) want.push_back(row.reference(static_cast<long double>(v)));
  for (const Isa isa : isas()) {
    run_at(isa, kernels::VecMathProbe<T>{x.data(), y.data(), row.f}, 0,
           static_cast<int64_t>(x.size()));
    double worst = 0;
    T at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      // In units of the last place of the wanted value, of the smallest normal one at least.
      const auto magnitude = std::max<long double>(fabsl(want[i]), std::numeric_limits<T>::min());
      const long double ulp =
          std::nextafter(static_cast<T>(magnitude), T(HUGE_VAL)) - static_cast<T>(magnitude);
      double error = static_cast<double>(fabsl(static_cast<long double>(y[i]) - want[i]) / ulp);
      if (!std::isfinite(y[i])) error = HUGE_VAL;
      if (!(error <= worst)) worst = error, at = x[i];
    }
    INFO(row.name << " f" << 8 * sizeof(T) << " at " << name_of(isa) << ": worst " << worst
                  << " ulp at " << at);
    CHECK(worst <= allowed);
  }
}

TEST_CASE("exp, log, tanh, erf, sqrt and the normal distribution at every instruction set") {
  for (const Row& row : kRows) {
    check_row<float>(row, row.ulps32);
    Row wide = row;
    check_row<double>(wide, row.ulps64);
  }
}

TEST_CASE("outside their ranges the functions give limits, zeros and NaN") {
  const float inf = HUGE_VALF;
  const float nan = std::nanf("");
  const float tiny = 1e-40f;  // subnormal
  const std::vector<float> x = {inf,    -inf, nan, 0,   -0.0f, tiny, -tiny, 3e38f,
                                -3e38f, 1,    -1,  100, -100,  1,    1,     1};
  const auto at = [&](Isa isa, Probe f) {
    std::vector<float> y(16);
    run_at(isa, kernels::VecMathProbe<float>{x.data(), y.data(), f}, 0, 16);
    return y;
  };
  for (const Isa isa : isas()) {
    INFO(name_of(isa));
    const auto e = at(isa, Probe::exp);
    CHECK((e[0] == inf && e[1] == 0 && std::isnan(e[2]) && e[3] == 1 && e[4] == 1 && e[5] == 1));
    CHECK((e[7] == inf && e[8] == 0 && e[11] == inf && e[12] == 0));
    const auto l = at(isa, Probe::log);
    CHECK((l[0] == inf && std::isnan(l[1]) && std::isnan(l[2]) && l[3] == -inf && l[4] == -inf));
    CHECK((l[5] == -inf && std::isnan(l[8]) && l[9] == 0 && std::isnan(l[10])));
    const auto t = at(isa, Probe::tanh);
    CHECK((t[0] == 1 && t[1] == -1 && std::isnan(t[2]) && t[3] == 0 && std::signbit(t[4])));
    CHECK((t[5] == tiny && t[6] == -tiny && t[7] == 1 && t[8] == -1));
    const auto r = at(isa, Probe::erf);
    CHECK((r[0] == 1 && r[1] == -1 && std::isnan(r[2]) && r[3] == 0 && r[7] == 1 && r[8] == -1));
    CHECK(r[5] == Approx(1.1283791f * tiny));
    const auto c = at(isa, Probe::normal_cdf);
    CHECK((c[0] == 1 && c[1] == 0 && std::isnan(c[2]) && c[3] == 0.5f && c[8] == 0 && c[12] == 0));
    const auto d = at(isa, Probe::normal_density);
    CHECK((d[0] == 0 && d[1] == 0 && std::isnan(d[2]) && d[7] == 0 && d[12] == 0));
  }
}

}  // namespace
}  // namespace sherd
