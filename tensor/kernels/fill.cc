#include "tensor/kernels/fill.h"

#include <algorithm>

#include "tensor/kernels/copy.h"

namespace sherd {

namespace {

constexpr int64_t kBlock = 64 * 1024;  // elements

template <class T>
T number(double value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

}  // namespace

void fill(const Tensor& t, double value) {
  void* data = t.raw();
  if (t.numel() == 0) return;
  // On meta too, which allocates what a device does.
  if (!t.is_contiguous())
    return copy(Tensor::full(t.runtime(), {}, value, t.dtype()).expand(t.shape()), t);
  if (t.device().is_meta()) return;
  on_dtype<float, double, bf16, f16, int32_t, int64_t, uint8_t, bool>(
      t.dtype(), "fill", [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* const p = static_cast<T*>(data);
        const T v = number<T>(value);
        const int64_t n = t.numel();
        t.runtime()->pool().run((n + kBlock - 1) / kBlock, [&](int64_t i) {
          std::fill(p + i * kBlock, p + std::min(n, (i + 1) * kBlock), v);
        });
      });
}

}  // namespace sherd
