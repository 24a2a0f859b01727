// Shape: dims in elements, row-major, at most kMaxDims, no heap. Printed as [2, 3].
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

#include "base/error.h"

namespace sherd {

inline constexpr int kMaxDims = 8;

/// A short list of integers; Shape and Strides are both one.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> dims) : Dims(std::span(dims.begin(), dims.size())) {}
  explicit Dims(std::span<const int64_t> dims) : size_(static_cast<int>(dims.size())) {
    check(dims.size() <= kMaxDims, "a tensor has at most 8 dims, got", dims.size());
    std::copy(dims.begin(), dims.end(), dims_.begin());
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  int64_t back() const { return dims_[static_cast<size_t>(size_ - 1)]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + size_; }
  void push_back(int64_t d) {
    check(size_ < kMaxDims, "a tensor has at most 8 dims");
    dims_[static_cast<size_t>(size_++)] = d;
  }

  friend bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend std::ostream& operator<<(std::ostream& out, const Dims& d) {
    out << '[';
    for (int i = 0; i < d.size(); ++i) out << (i ? ", " : "") << d[i];
    return out << ']';
  }

 private:
  std::array<int64_t, kMaxDims> dims_{};
  int size_ = 0;
};

/// Strides in elements; 0 repeats (a broadcast dim).
using Strides = Dims;

class Shape : public Dims {
 public:
  static constexpr int64_t kMaxElements = int64_t{1} << 58;

  using Dims::Dims;

  /// Product of the dims; 1 for a scalar. Throws usage if a dim is negative, or if the dims that
  /// are not 0 have more than 2^58 elements: strides and sizes in bytes are never beyond 63 bits.
  int64_t numel() const {
    int64_t n = 1;
    bool none = false;
    for (const int64_t d : *this) {
      none = none || d == 0;
      const bool fits = d >= 0 && !__builtin_mul_overflow(n, d == 0 ? 1 : d, &n);
      check(fits && n <= kMaxElements,
            "a dim of the shape is negative, or it has too many elements:", *this);
    }
    return none ? 0 : n;
  }

  /// `dim` counted from the front, or from the back when negative. Throws usage when out of range.
  int resolve(int dim) const {
    const int d = dim < 0 ? dim + size() : dim;
    check(d >= 0 && d < size(), "dim out of range: dim", dim, "of", *this);
    return d;
  }

  /// The shape seen as a matrix [rows(dim), columns(dim)]: products of the dims before and from
  /// `dim`.
  int64_t rows(int dim) const {
    int64_t n = 1;
    for (int i = 0; i < dim; ++i) n *= (*this)[i];
    return n;
  }
  int64_t columns(int dim) const {
    int64_t n = 1;
    for (int i = dim; i < size(); ++i) n *= (*this)[i];
    return n;
  }

  /// Strides of a contiguous tensor.
  Strides contiguous_strides() const {
    Strides s;
    for (int i = 0; i < size(); ++i) s.push_back(1);
    for (int i = size() - 2; i >= 0; --i) s[i] = s[i + 1] * (*this)[i + 1];
    return s;
  }
};

/// NumPy's rule: dims aligned at the back, equal or 1. Throws usage naming both shapes.
inline Shape broadcast(const Shape& a, const Shape& b) {
  Shape out;
  const int n = std::max(a.size(), b.size());
  for (int i = 0; i < n; ++i) {
    const int ia = i - (n - a.size());
    const int ib = i - (n - b.size());
    const int64_t da = ia < 0 ? 1 : a[ia];
    const int64_t db = ib < 0 ? 1 : b[ib];
    check(da == db || da == 1 || db == 1, "shapes do not broadcast:", a, "and", b);
    out.push_back(da == 1 ? db : da);
  }
  return out;
}

}  // namespace sherd
