// Comparing many numbers: the first bad index, the worst error and both values, instead of a bare
// "not equal".
#pragma once

#include <cmath>
#include <limits>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace sherd::test {

/// |got - want| <= absolute + relative · |want|
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

/// True or an explanation; CHECK(near(...)) prints it.
struct Comparison {
  std::string trouble;
  explicit operator bool() const { return trouble.empty(); }
  friend std::ostream& operator<<(std::ostream& out, const Comparison& c) {
    return out << (c.trouble.empty() ? "near" : c.trouble);
  }
};

/// Equal infinities and two NaNs are near; every other value that is not finite is not.
inline Comparison near(const std::vector<double>& got, const std::vector<double>& want,
                       Tolerance tolerance) {
  std::ostringstream out;
  out.precision(17);
  if (got.size() != want.size()) {
    out << "got " << got.size() << " values, want " << want.size();
    return {out.str()};
  }
  size_t first = got.size();
  size_t worst = 0;
  size_t bad = 0;
  double worst_excess = -1;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    const double allowed = tolerance.absolute + tolerance.relative * std::abs(want[i]);
    double excess = std::abs(got[i] - want[i]) - allowed;
    if (!std::isfinite(got[i]) || !std::isfinite(want[i]))
      excess = std::numeric_limits<double>::infinity();
    if (excess <= 0) continue;
    ++bad;
    if (first == got.size()) first = i;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (bad == 0) return {};
  const auto show = [&](const char* what, size_t i) {
    out << what << " at element " << i << ": got " << got[i] << ", want " << want[i] << ", error "
        << std::abs(got[i] - want[i]) << "; ";
  };
  out << bad << " of " << got.size() << " values are off; ";
  show("first", first);
  show("worst", worst);
  out << "allowed " << tolerance.absolute << " + " << tolerance.relative << " * |want|";
  return {out.str()};
}

/// The same for a tensor of any dtype.
inline Comparison near(const Tensor& got, const std::vector<double>& want, Tolerance tolerance) {
  return near(got.to_vector<double>(), want, tolerance);
}

inline Comparison near(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  if (got.shape() != want.shape())
    return {detail::concat("got shape ", got.shape(), ", want ", want.shape())};
  return near(got.to_vector<double>(), want.to_vector<double>(), tolerance);
}

/// The same bits, but that every NaN is one; values are compared in f64, which holds them all.
inline Comparison same_bits(const std::vector<double>& got, const std::vector<double>& want) {
  Comparison c = near(got, want, {});
  for (size_t i = 0; c && i < got.size(); ++i)
    if (std::signbit(got[i]) != std::signbit(want[i]) && !std::isnan(got[i]))
      c.trouble = detail::concat("signs differ at element ", i, ": got ", got[i]);
  return c;
}

}  // namespace sherd::test
