#include "tensor/kernels/arithmetic_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

namespace {

/// A vector of elements that are `stride` apart, zeros behind the first n.
template <class T>
[[gnu::always_inline]] inline Vec<T> gather(const T* p, int64_t stride, int64_t n) {
  T x[kLanes<T>] = {};
  for (int64_t i = 0; i < n; ++i) x[i] = p[i * stride];
  return load(x);
}

template <class T>
[[gnu::always_inline]] inline Vec<T> repeat(const T* p) {
  T x[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) x[i] = *p;
  return load(x);
}

/// One run along the last dim: n elements at steps of sa and sb.
template <class T, class F>
[[gnu::always_inline]] inline void row(const T* a, int64_t sa, const T* b, int64_t sb, T* y,
                                       int64_t n, const F& f) {
  if (sa == 1 && sb == 1) {
    for_lanes<T>(n,
                 [&](int64_t i, int64_t m) { store(y + i, f(load(a + i, m), load(b + i, m)), m); });
  } else if (sa == 1 && sb == 0) {
    const Vec<T> vb = repeat(b);
    for_lanes<T>(n, [&](int64_t i, int64_t m) { store(y + i, f(load(a + i, m), vb), m); });
  } else if (sa == 0 && sb == 1) {
    const Vec<T> va = repeat(a);
    for_lanes<T>(n, [&](int64_t i, int64_t m) { store(y + i, f(va, load(b + i, m)), m); });
  } else {
    for (int64_t i = 0; i < n; i += kLanes<T>) {
      const int64_t m = n - i < kLanes<T> ? n - i : kLanes<T>;
      store(y + i, f(gather(a + i * sa, sa, m), gather(b + i * sb, sb, m)), m);
    }
  }
}

template <class T, class F>
[[gnu::always_inline]] inline void rows(const ArithmeticBroadcast<T>& k, int64_t begin, int64_t end,
                                        const F& f) {
  const int last = k.dims - 1;
  const int64_t n = k.shape[last];
  for (int64_t i = begin; i < end;) {
    int64_t rest = i / n;
    const int64_t offset = i - rest * n;
    const T* a = k.a + offset * k.a_strides[last];
    const T* b = k.b + offset * k.b_strides[last];
    for (int d = last - 1; d >= 0; --d) {
      const int64_t index = rest % k.shape[d];
      rest /= k.shape[d];
      a += index * k.a_strides[d];
      b += index * k.b_strides[d];
    }
    const int64_t m = n - offset < end - i ? n - offset : end - i;
    row(a, k.a_strides[last], b, k.b_strides[last], k.y + i, m, f);
    i += m;
  }
}

}  // namespace

template <class T>
template <Isa I>
void ArithmeticBroadcast<T>::run(int64_t begin, int64_t end) const {
  switch (f) {
    case Arithmetic::add:
      return rows(*this, begin, end, [](Vec<T> x, Vec<T> y) { return x + y; });
    case Arithmetic::sub:
      return rows(*this, begin, end, [](Vec<T> x, Vec<T> y) { return x - y; });
    case Arithmetic::mul:
      return rows(*this, begin, end, [](Vec<T> x, Vec<T> y) { return x * y; });
    case Arithmetic::div:
      return rows(*this, begin, end, [](Vec<T> x, Vec<T> y) { return x / y; });
    case Arithmetic::minus_quotient:
      return rows(*this, begin, end, [](Vec<T> x, Vec<T> y) { return -x / y; });
  }
}

template <class T>
template <Isa I>
void Scale<T>::run(int64_t begin, int64_t end) const {
  const T* const from = x + begin;
  T* const to = y + begin;
  const Vec<T> by = splat(static_cast<sherd::Accumulate<T>>(factor));
  for_lanes<T>(end - begin,
               [&](int64_t i, int64_t n) { store(to + i, load(from + i, n) * by, n); });
}

template void ArithmeticBroadcast<float>::run<kIsa>(int64_t, int64_t) const;
template void ArithmeticBroadcast<double>::run<kIsa>(int64_t, int64_t) const;
template void ArithmeticBroadcast<bf16>::run<kIsa>(int64_t, int64_t) const;
template void ArithmeticBroadcast<f16>::run<kIsa>(int64_t, int64_t) const;
template void Scale<float>::run<kIsa>(int64_t, int64_t) const;
template void Scale<double>::run<kIsa>(int64_t, int64_t) const;
template void Scale<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Scale<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
