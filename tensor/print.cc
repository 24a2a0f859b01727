#include "tensor/print.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace sherd {

namespace {

constexpr int64_t kAll = 1000;  // elements that are printed whole
constexpr int64_t kEdge = 3;

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  std::string s = text;
  if (s.find_first_of(".en") == std::string::npos)
    s += '.';  // 1. is not an integer; nan, inf, 1e+20
  return s;
}

std::string element(const Tensor& t, int64_t offset) {
  std::string text;
  on_dtype<float, double, bf16, f16, int32_t, int64_t, uint8_t, bool>(
      t.dtype(), "print", [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T x = t.data<T>()[offset];
        if constexpr (std::is_same_v<T, bool>)
          text = x ? "True" : "False";
        else if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
          text = number(static_cast<double>(static_cast<float>(x)));
        else if constexpr (std::is_integral_v<T>)
          text = std::to_string(x);
        else
          text = number(static_cast<double>(x));
      });
  return text;
}

class Printer {
 public:
  explicit Printer(const Tensor& t) : t_(t), whole_(t.numel() <= kAll) {}

  void print(std::ostream& out) {
    measuring_ = true;
    dim(out, 0, 0);
    measuring_ = false;
    dim(out, 0, 0);
  }

 private:
  void dim(std::ostream& out, int d, int64_t offset) {
    if (d == t_.dims()) {
      const std::string text = element(t_, offset);
      if (measuring_)
        width_ = std::max(width_, text.size());
      else
        out << std::string(width_ - text.size(), ' ') << text;
      return;
    }
    const int64_t n = t_.shape()[d];
    const bool last = d == t_.dims() - 1;
    text(out, "[");
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0)
        text(out, last ? " "
                       : std::string(static_cast<size_t>(t_.dims() - 1 - d), '\n') +
                             std::string(static_cast<size_t>(d) + 1, ' '));
      if (!whole_ && n > 2 * kEdge && i == kEdge) {
        text(out, "...");
        i = n - kEdge - 1;
        continue;
      }
      dim(out, d + 1, offset + i * t_.strides()[d]);
    }
    text(out, "]");
  }

  void text(std::ostream& out, const std::string& s) const {
    if (!measuring_) out << s;
  }

  const Tensor& t_;
  const bool whole_;
  bool measuring_ = true;
  size_t width_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  if (!t) return out << "(empty handle)";
  if (t.device().is_meta()) return out << "(meta " << describe(t) << ')';
  if (!t.storage()->resident()) return out << "(released " << describe(t) << ')';
  if (t.numel() == 0) return out << "[] (" << describe(t) << ')';
  Printer(t).print(out);
  return out;
}

}  // namespace sherd
