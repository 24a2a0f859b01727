// A sum of doubles without any rounding, so it does not depend on the order of the terms or on how
// they are spread over threads and ranks: a wide fixed-point number in digits of 32 bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace sherd {

/// Of terms ≥ 0. Kulisch 1971 ("super-accumulator"); terms may be any double, 2^-1074 to 2^1024.
class ExactSum {
 public:
  /// 68 digits hold the doubles, 2 more 2^62 terms; the last counts terms that are not finite.
  static constexpr int kDigits = 70;
  static constexpr int kWords = kDigits + 1;

  /// x ≥ 0, infinite or NaN. About 5 ns.
  void add(double x);
  void add(const ExactSum& other);

  /// The sum rounded once, to nearest even; NaN if any term was not finite; infinity above the
  /// range.
  double value() const;

  /// For a sum over ranks: words may be added to those of up to 2^30 others, word by word.
  std::span<int64_t> words();

 private:
  void carry();

  std::array<int64_t, kWords> words_{};
  int32_t uncarried_ = 0;  // additions since carry(); a digit must not reach 2^63
};

}  // namespace sherd
