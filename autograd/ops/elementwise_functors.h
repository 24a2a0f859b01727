// Functions of one number, a row each: value and derivative from x. What a kernel does not use of a
// row costs nothing, since rows are inlined. Only NAME_cpu.cc files include this.
#pragma once

#include "autograd/ops/elementwise_kernels.h"
#include "tensor/kernels/vec_math.h"

namespace sherd::kernels {
namespace {

template <class V>
struct Row {
  V value;
  V derivative;
};

struct None {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    return {x, V{} + 1};
  }
};

struct Relu {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    const V zero{};
    return {keep_nan(x, max(x, zero)), select_less(zero, x, zero + 1, zero)};
  }
};

/// σ(x) = r and 1 - σ(x) = e r, each with all its digits, where e = e^-x and r = 1 / (1 + e). x is
/// cut where that changes no digit; far left σ is 0, for x σ(x) to be 0. NaN may become any value.
template <class V>
[[gnu::always_inline]] inline void logistic(V x, V& s, V& rest) {
  constexpr auto kEnd = static_cast<ElementOf<V>>(-kExpLow<ElementOf<V>>) - 1;
  const V e = exp_in_range(clamp(-x, -kEnd, kEnd));
  const V r = reciprocal(e + 1);
  s = select_less(splat(kEnd), -x, V{}, r);
  rest = e * r;
}

struct Sigmoid {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    V s;
    V rest;
    logistic(x, s, rest);
    s = keep_nan(x, s);
    return {s, s * rest};
  }
};

struct Silu {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    V s;
    V rest;
    logistic(x, s, rest);
    const V y = x * s;
    return {y, s + y * rest};
  }
};

/// (1 + tanh u) / 2 = σ(2u) saves the tanh, and keeps the digits of the left tail.
struct GeluTanh {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    using E = decltype(x[0] + x[0]);
    constexpr E k = static_cast<E>(1.5957691216057308);  // 2 √(2/π)
    constexpr E c = static_cast<E>(0.044715);
    V x2 = x * x;
    // Beyond, σ is 0 or 1: no overflow, and the same value.
    x2 = select_less(V{} + 400, x2, V{} + 400, x2);
    V s;
    V rest;
    logistic(x * (x2 * (k * c) + k), s, rest);
    const V y = x * s;
    return {y, s + y * rest * (x2 * (3 * k * c) + k)};
  }
};

struct GeluErf {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    V cdf;
    V density;
    normal_cdf(x, cdf, density);
    return {x * cdf, x * density + cdf};
  }
};

struct Tanh {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    const V t = tanh(x);
    return {t, 1 - t * t};
  }
};

struct Exp {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    const V y = exp(x);
    return {y, y};
  }
};

struct Log {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    return {log(x), 1 / x};
  }
};

struct Sqrt {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    const V y = sqrt(x);
    return {y, 1 / (y + y)};
  }
};

struct Square {
  template <class V>
  [[gnu::always_inline]] static Row<V> at(V x) {
    return {x * x, x + x};
  }
};

/// Calls body with the row that the enumerator names.
template <class Body>
[[gnu::always_inline]] inline void on_row(Activation a, const Body& body) {
  switch (a) {
    case Activation::none:
      return body(None{});
    case Activation::relu:
      return body(Relu{});
    case Activation::gelu_tanh:
      return body(GeluTanh{});
    case Activation::gelu_erf:
      return body(GeluErf{});
    case Activation::silu:
      return body(Silu{});
    case Activation::sigmoid:
      return body(Sigmoid{});
    case Activation::tanh:
      return body(Tanh{});
  }
}
template <class Body>
[[gnu::always_inline]] inline void on_row(Function f, const Body& body) {
  switch (f) {
    case Function::exp:
      return body(Exp{});
    case Function::log:
      return body(Log{});
    case Function::sqrt:
      return body(Sqrt{});
    case Function::square:
      return body(Square{});
  }
}

}  // namespace
}  // namespace sherd::kernels
