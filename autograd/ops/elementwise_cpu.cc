#include "autograd/ops/elementwise_functors.h"
#include "autograd/ops/elementwise_kernels.h"

namespace sherd::kernels {

namespace {

/// for_lanes with one copy of the body, which is long here: the branch on the tail costs less.
template <class T, class Body>
[[gnu::always_inline]] inline void each_vector(int64_t n, const Body& body) {
  for (int64_t i = 0; i < n; i += kLanes<T>) body(i, n - i < kLanes<T> ? n - i : kLanes<T>);
}

}  // namespace

template <class T, class Which>
template <Isa I>
void ElementwiseForward<T, Which>::run(int64_t begin, int64_t end) const {
  on_row(f, [&](auto row) {
    each_vector<T>(end - begin, [&](int64_t i, int64_t n) {
      store(y + begin + i, row.at(load(x + begin + i, n)).value, n);
    });
  });
}

template <class T, class Which>
template <Isa I>
void ElementwiseBackward<T, Which>::run(int64_t begin, int64_t end) const {
  on_row(f, [&](auto row) {
    each_vector<T>(end - begin, [&](int64_t i, int64_t n) {
      const auto derivative = row.at(load(x + begin + i, n)).derivative;
      store(dx + begin + i, load(dy + begin + i, n) * derivative, n);
    });
  });
}

template <class T>
template <Isa I>
void ActivationBackwardFused<T>::run(int64_t begin, int64_t end) const {
  on_row(f, [&](auto row) {
    each_vector<T>(end - begin, [&](int64_t i, int64_t n) {
      const auto both = row.at(load(x + begin + i, n));
      store(dx + begin + i, load(dy + begin + i, n) * both.derivative, n);
      store(y + begin + i, both.value, n);
    });
  });
}

template void ElementwiseForward<float, Activation>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseForward<double, Activation>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseForward<bf16, Activation>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseForward<f16, Activation>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseForward<float, Function>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseForward<double, Function>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseForward<bf16, Function>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseForward<f16, Function>::run<kIsa>(int64_t, int64_t) const;

template void ElementwiseBackward<float, Activation>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseBackward<double, Activation>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseBackward<bf16, Activation>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseBackward<f16, Activation>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseBackward<float, Function>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseBackward<double, Function>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseBackward<bf16, Function>::run<kIsa>(int64_t, int64_t) const;
template void ElementwiseBackward<f16, Function>::run<kIsa>(int64_t, int64_t) const;

template void ActivationBackwardFused<float>::run<kIsa>(int64_t, int64_t) const;
template void ActivationBackwardFused<double>::run<kIsa>(int64_t, int64_t) const;
template void ActivationBackwardFused<bf16>::run<kIsa>(int64_t, int64_t) const;
template void ActivationBackwardFused<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
