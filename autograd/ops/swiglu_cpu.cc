#include "autograd/ops/elementwise_functors.h"
#include "autograd/ops/swiglu_kernels.h"

namespace sherd::kernels {

template <class T>
template <Isa I>
void Swiglu<T>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const T* gate = x + row * 2 * width;
    T* yr = y + row * width;
    for_lanes<T>(width, [&](int64_t i, int64_t n) {
      store(yr + i, Silu::at(load(gate + i, n)).value * load(gate + width + i, n), n);
    });
  }
}

template <class T>
template <Isa I>
void SwigluBackward<T>::run(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    const T* gate = x + row * 2 * width;
    const T* dyr = dy + row * width;
    T* dgate = dx + row * 2 * width;
    for_lanes<T>(width, [&](int64_t i, int64_t n) {
      const auto silu = Silu::at(load(gate + i, n));
      const Vec<T> d = load(dyr + i, n);
      store(dgate + i, d * load(gate + width + i, n) * silu.derivative, n);
      store(dgate + width + i, d * silu.value, n);
    });
  }
}

template void Swiglu<float>::run<kIsa>(int64_t, int64_t) const;
template void Swiglu<double>::run<kIsa>(int64_t, int64_t) const;
template void Swiglu<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Swiglu<f16>::run<kIsa>(int64_t, int64_t) const;
template void SwigluBackward<float>::run<kIsa>(int64_t, int64_t) const;
template void SwigluBackward<double>::run<kIsa>(int64_t, int64_t) const;
template void SwigluBackward<bf16>::run<kIsa>(int64_t, int64_t) const;
template void SwigluBackward<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
