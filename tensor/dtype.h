// Element types. f32, f64, bf16 and f16 are computed in; the integers are indices and masks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace sherd {

enum class DType : uint8_t { f32, f64, bf16, f16, i32, i64, u8, boolean };

/// bfloat16: the upper half of an f32. Conversion from f32 rounds to nearest even; NaN stays NaN.
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  [[gnu::always_inline]] explicit bf16(float x) {
    const auto u = __builtin_bit_cast(uint32_t, x);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<uint16_t>((u >> 16) | 0x40u)
               : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  [[gnu::always_inline]] explicit operator float() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
  friend bool operator==(bf16 a, bf16 b) { return static_cast<float>(a) == static_cast<float>(b); }
};

/// IEEE 754 binary16. Conversion from f32 rounds to nearest even, overflows to infinity.
struct f16 {
  uint16_t bits = 0;
  f16() = default;
  explicit f16(float x);
  explicit operator float() const;
  friend bool operator==(f16 a, f16 b) { return static_cast<float>(a) == static_cast<float>(b); }
};

[[gnu::always_inline]] inline f16::f16(float x) {
  const auto u = __builtin_bit_cast(uint32_t, x);
  const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) {  // NaN
    bits = static_cast<uint16_t>(sign | 0x7e00u);
  } else if (a >= 0x477ff000u) {  // rounds to 65536 or more
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (a >= 0x38800000u) {  // normal: rebias 127 -> 15, round the 13 dropped bits
    const uint32_t r = a - 0x38000000u;
    bits = static_cast<uint16_t>(sign | ((r + 0xfffu + ((r >> 13) & 1u)) >> 13));
  } else {  // subnormal: adding 0.5 aligns the mantissa so that the FPU rounds
    const float shifted = __builtin_bit_cast(float, a) + 0.5f;
    bits = static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3f000000u));
  }
}

[[gnu::always_inline]] inline f16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) return __builtin_bit_cast(float, sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return __builtin_bit_cast(float, sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float value = static_cast<float>(mantissa) * 0x1p-24f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, value));
}

/// Bytes of one element.
constexpr size_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "bool";
  }
  return "unknown";
}

inline std::ostream& operator<<(std::ostream& out, DType t) { return out << name_of(t); }

/// The way back from name_of; throws usage for another name.
DType parse_dtype(std::string_view name);

constexpr bool is_floating(DType t) {
  return t == DType::f32 || t == DType::f64 || t == DType::bf16 || t == DType::f16;
}

namespace detail {

template <class T>
constexpr DType dtype_for() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::f64;
  } else if constexpr (std::is_same_v<T, bf16>) {
    return DType::bf16;
  } else if constexpr (std::is_same_v<T, f16>) {
    return DType::f16;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return DType::i32;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return DType::i64;
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return DType::u8;
  } else {
    static_assert(std::is_same_v<T, bool>, "no DType for this type");
    return DType::boolean;
  }
}

}  // namespace detail

/// The C++ type's DType: dtype_of<float> is DType::f32.
template <class T>
inline constexpr DType dtype_of = detail::dtype_for<T>();

/// The dtype in which gradients of weights, sums and statistics are kept: f64 for f64, else f32.
constexpr DType accumulate_dtype(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

/// accumulate_dtype for C++ types.
template <class T>
using Accumulate = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Calls body(std::type_identity<T>{}) for the T of Ts that is `t`; throws usage naming `op` and
/// `t` otherwise.
template <class... Ts, class Body>
void on_dtype(DType t, const char* op, Body&& body) {
  const bool hit = ((dtype_of<Ts> == t ? (body(std::type_identity<Ts>{}), true) : false) || ...);
  if (!hit) fail("dtype is not supported by", op, ": ", t);
}

}  // namespace sherd
