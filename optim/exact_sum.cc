#include "optim/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace sherd {

namespace {

constexpr int kDigitBits = 32;
constexpr int64_t kBase = int64_t{1} << kDigitBits;
constexpr int kLowestExponent = -1074;      // the weight of the lowest bit is 2^-1074
constexpr int32_t kMaxUncarried = 1 << 30;  // each addition adds less than 2^32 to a digit

}  // namespace

void ExactSum::add(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<int>((bits >> 52) & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff) {
    ++words_[kDigits];
    return;
  }
  // x = mantissa · 2^(place - 1074)
  const uint64_t mantissa = exponent == 0 ? fraction : fraction | (uint64_t{1} << 52);
  const int place = exponent == 0 ? 0 : exponent - 1;
  const unsigned __int128 shifted = static_cast<unsigned __int128>(mantissa)
                                    << (place % kDigitBits);
  int64_t* digit = words_.data() + place / kDigitBits;
  digit[0] += static_cast<uint32_t>(shifted);
  digit[1] += static_cast<uint32_t>(shifted >> 32);
  digit[2] += static_cast<uint32_t>(shifted >> 64);
  if (++uncarried_ == kMaxUncarried) carry();
}

void ExactSum::add(const ExactSum& other) {
  ExactSum carried = other;
  carried.carry();
  carry();
  for (int i = 0; i < kWords; ++i) words_[i] += carried.words_[i];
  uncarried_ = 1;
}

void ExactSum::carry() {
  for (int i = 0; i + 1 < kDigits; ++i) {
    words_[i + 1] += words_[i] / kBase;
    words_[i] %= kBase;
  }
  uncarried_ = 0;
}

std::span<int64_t> ExactSum::words() {
  carry();
  return words_;
}

double ExactSum::value() const {
  ExactSum sum = *this;
  sum.carry();
  if (sum.words_[kDigits] != 0) return std::numeric_limits<double>::quiet_NaN();
  int top = kDigits - 1;
  while (top > 0 && sum.words_[top] == 0) --top;
  // The top three digits hold at least 65 bits; what is below counts only as being there.
  unsigned __int128 head = 0;
  for (int i = top; i > top - 3; --i)
    head = (head << kDigitBits) | (i >= 0 ? static_cast<uint32_t>(sum.words_[i]) : 0u);
  bool rest = false;
  for (int i = 0; i <= top - 3; ++i) rest = rest || sum.words_[i] != 0;
  if (head == 0) return 0;
  int shift = 0;
  while ((head >> shift) >> 64 != 0) ++shift;
  auto mantissa = static_cast<uint64_t>(head >> shift);
  const unsigned __int128 dropped = head & ((static_cast<unsigned __int128>(1) << shift) - 1);
  if (rest || dropped != 0) mantissa |= 1;  // 64 bits to 53: the lowest only breaks ties
  return std::ldexp(static_cast<double>(mantissa),
                    (top - 2) * kDigitBits + shift + kLowestExponent);
}

}  // namespace sherd
