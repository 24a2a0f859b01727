#include "autograd/ops/softmax_kernels.h"
#include "tensor/kernels/vec_rows.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void Softmax<T>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const T* xr = x + row * columns;
    T* yr = y + row * columns;
    const auto [max, sum] = max_and_sum(xr, columns);
    const Vec<T> m = splat(max);
    const Vec<T> inverse = splat(Accumulate<T>{1} / sum);
    for_lanes<T>(columns, [&](int64_t i, int64_t k) {
      store(yr + i, exp(load(xr + i, k) - m) * inverse, k);
    });
  }
}

template <class T>
template <Isa I>
void SoftmaxBackward<T>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const T* yr = y + row * columns;
    const T* dyr = dy + row * columns;
    T* dxr = dx + row * columns;
    const Vec<T> dot = splat(sum_of<T>(
        columns, [&](int64_t i, int64_t k) { return load(dyr + i, k) * load(yr + i, k); }));
    for_lanes<T>(columns, [&](int64_t i, int64_t k) {
      store(dxr + i, load(yr + i, k) * (load(dyr + i, k) - dot), k);
    });
  }
}

template <class T>
template <Isa I>
void LogSoftmax<T>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const T* xr = x + row * columns;
    T* yr = y + row * columns;
    const auto [max, sum] = max_and_sum(xr, columns);
    const Vec<T> m = splat(max);
    const Vec<T> log_sum = log(splat(sum));
    for_lanes<T>(columns,
                 [&](int64_t i, int64_t k) { store(yr + i, (load(xr + i, k) - m) - log_sum, k); });
  }
}

template <class T>
template <Isa I>
void LogSoftmaxBackward<T>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const T* yr = y + row * columns;
    const T* dyr = dy + row * columns;
    T* dxr = dx + row * columns;
    const Vec<T> total =
        splat(sum_of<T>(columns, [&](int64_t i, int64_t k) { return load(dyr + i, k); }));
    for_lanes<T>(columns, [&](int64_t i, int64_t k) {
      store(dxr + i, load(dyr + i, k) - exp(load(yr + i, k)) * total, k);
    });
  }
}

template void Softmax<float>::run<kIsa>(int64_t, int64_t) const;
template void Softmax<double>::run<kIsa>(int64_t, int64_t) const;
template void Softmax<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Softmax<f16>::run<kIsa>(int64_t, int64_t) const;
template void SoftmaxBackward<float>::run<kIsa>(int64_t, int64_t) const;
template void SoftmaxBackward<double>::run<kIsa>(int64_t, int64_t) const;
template void SoftmaxBackward<bf16>::run<kIsa>(int64_t, int64_t) const;
template void SoftmaxBackward<f16>::run<kIsa>(int64_t, int64_t) const;
template void LogSoftmax<float>::run<kIsa>(int64_t, int64_t) const;
template void LogSoftmax<double>::run<kIsa>(int64_t, int64_t) const;
template void LogSoftmax<bf16>::run<kIsa>(int64_t, int64_t) const;
template void LogSoftmax<f16>::run<kIsa>(int64_t, int64_t) const;
template void LogSoftmaxBackward<float>::run<kIsa>(int64_t, int64_t) const;
template void LogSoftmaxBackward<double>::run<kIsa>(int64_t, int64_t) const;
template void LogSoftmaxBackward<bf16>::run<kIsa>(int64_t, int64_t) const;
template void LogSoftmaxBackward<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
