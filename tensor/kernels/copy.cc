#include "tensor/kernels/copy.h"

#include <cstring>

#include "tensor/kernels/copy_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

constexpr int64_t kBlock = 64 * 1024;  // bytes or elements: one core's cache share

void copy_bytes(Runtime& runtime, const void* from, void* to, int64_t bytes) {
  const int64_t blocks = (bytes + kBlock - 1) / kBlock;
  runtime.pool().run(blocks, [&](int64_t i) {
    const int64_t n = std::min(kBlock, bytes - i * kBlock);
    std::memcpy(static_cast<char*>(to) + i * kBlock, static_cast<const char*>(from) + i * kBlock,
                static_cast<size_t>(n));
  });
}

template <class From, class To>
bool convert_contiguous(Runtime& runtime, const Tensor& from, const Tensor& to) {
  if (from.dtype() != dtype_of<From> || to.dtype() != dtype_of<To>) return false;
  launch(runtime, kernels::Convert<From, To>{from.data<From>(), to.data<To>()}, from.numel(),
         kBlock);
  return true;
}

template <class From, class To>
To convert(From x) {
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else if constexpr (std::is_same_v<From, bf16> || std::is_same_v<From, f16>) {
    return convert<float, To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>) {
    return To(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

/// Strides of one element walk: the last dim is a plain loop, the dims before it are counted in
/// `index`.
template <class From, class To>
void copy_strided(Runtime& runtime, const Tensor& from, const Tensor& to) {
  const Shape& shape = to.shape();
  const int last = shape.size() - 1;
  const int64_t n = last < 0 ? 1 : shape[last];
  const int64_t rows = n == 0 ? 0 : shape.numel() / n;
  const int64_t step_from = last < 0 ? 1 : from.strides()[last];
  const int64_t step_to = last < 0 ? 1 : to.strides()[last];
  const From* x0 = from.data<From>();
  To* y0 = to.data<To>();
  const int64_t per_block = block_of(n);
  runtime.pool().run((rows + per_block - 1) / per_block, [&](int64_t block) {
    const int64_t end = std::min(rows, (block + 1) * per_block);
    for (int64_t row = block * per_block; row < end; ++row) {
      const From* x = x0;
      To* y = y0;
      int64_t rest = row;
      for (int d = last - 1; d >= 0; --d) {
        const int64_t index = rest % shape[d];
        rest /= shape[d];
        x += index * from.strides()[d];
        y += index * to.strides()[d];
      }
      if constexpr (std::is_same_v<From, To>) {
        if (step_from == 1 && step_to == 1) {
          std::memcpy(y, x, static_cast<size_t>(n) * sizeof(To));
          continue;
        }
      }
      for (int64_t i = 0; i < n; ++i) y[i * step_to] = convert<From, To>(x[i * step_from]);
    }
  });
}

template <class F>
void on_any_dtype(DType t, F&& body) {
  on_dtype<float, double, bf16, f16, int32_t, int64_t, uint8_t, bool>(t, "copy", body);
}

}  // namespace

void copy(const Tensor& from, const Tensor& to) {
  check(from.shape() == to.shape(), "copy wants equal shapes:", from.shape(), "to", to.shape());
  check(from.device() == to.device(), "copy wants one device:", from.device(), "to", to.device());
  void* target = to.raw();
  const void* source = from.raw();
  if (to.device().is_meta() || to.numel() == 0) return;
  Runtime& runtime = *to.runtime();
  if (from.is_contiguous() && to.is_contiguous()) {
    if (from.dtype() == to.dtype())
      return copy_bytes(runtime, source, target,
                        to.numel() * static_cast<int64_t>(size_of(to.dtype())));
    if (convert_contiguous<float, bf16>(runtime, from, to) ||
        convert_contiguous<bf16, float>(runtime, from, to) ||
        convert_contiguous<float, f16>(runtime, from, to) ||
        convert_contiguous<f16, float>(runtime, from, to))
      return;
  }
  on_any_dtype(from.dtype(), [&](auto f) {
    on_any_dtype(to.dtype(), [&](auto t) {
      copy_strided<typename decltype(f)::type, typename decltype(t)::type>(runtime, from, to);
    });
  });
}

}  // namespace sherd
