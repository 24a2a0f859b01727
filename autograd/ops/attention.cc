#include "autograd/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/ops/attention_kernels.h"
#include "tensor/kernels/launch.h"

namespace sherd {

namespace {

using kernels::AttentionSizes;
using kernels::HeadRows;

/// Tiles of a head lie on the stack.
constexpr int64_t kMaxHeadDim = 1024;

/// Itself where the last dim is dense, else a contiguous copy.
Tensor dense_rows(const Tensor& t) {
  return t.size(-1) == 1 || t.strides()[t.dims() - 1] == 1 ? t : t.contiguous();
}

template <class T>
HeadRows<const T> read(const Tensor& t) {
  return {t.data<T>(), t.strides()[0], t.strides()[1], t.strides()[2]};
}
template <class T>
HeadRows<T> write(const Tensor& t) {
  return {t.data<T>(), t.strides()[0], t.strides()[1], t.strides()[2]};
}

AttentionSizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                        bool causal) {
  check(q.dims() == 4 && k.dims() == 4 && k.shape() == v.shape(),
        "wants q [B, T, H, D] and k, v [B, S, Hkv, D], got", q.shape(), k.shape(), v.shape());
  const AttentionSizes z{q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3), causal};
  check(k.size(0) == z.B && k.size(3) == z.D && z.D > 0 && z.Hkv > 0 && z.H % z.Hkv == 0,
        "q and k must agree in batch and head dim, and H be a multiple of Hkv:", q.shape(),
        k.shape());
  check(z.D <= kMaxHeadDim, "head dim is at most", kMaxHeadDim, ", got", z.D);
  check(q.dtype() == k.dtype() && q.dtype() == v.dtype(), "wants one dtype, got", q.dtype(),
        k.dtype(), v.dtype());
  check(!mask || (mask.dtype() == DType::boolean && mask.shape() == Shape{z.B, z.S}),
        "key_mask must be bool", Shape{z.B, z.S}, mask ? describe(mask) : "");
  return z;
}

/// Items of a block: several, so that one fetches for the next while it computes, if enough blocks
/// are left for many threads.
int64_t items_at_once(int64_t items) { return std::clamp<int64_t>(items / 16, 1, 4); }

template <class Body>
void on_float(DType dtype, const Body& body) {
  on_dtype<float, double, bf16, f16>(dtype, "attention", body);
}

/// What forward saves for backward.
struct Kept {
  AttentionSizes sizes;
  double scale;
  Saved q, k, v, y, lse, mask;
};

Grads backward(const Kept& kept, const Tensor& dy) {
  const AttentionSizes& z = kept.sizes;
  const Tensor& q = kept.q.get();
  const Tensor dy_rows = dense_rows(dy);
  const RuntimePtr& runtime = q.runtime();
  const DType sum_dtype = accumulate_dtype(q.dtype());
  Tensor dq, dk, dv;
  if (z.S == z.T) {
    const Tensor all = Tensor::empty(runtime, {z.B, z.T, z.H + 2 * z.Hkv, z.D}, q.dtype());
    dq = all.slice(2, 0, z.H);
    dk = all.slice(2, z.H, z.H + z.Hkv);
    dv = all.slice(2, z.H + z.Hkv, z.H + 2 * z.Hkv);
  } else {
    dq = Tensor::empty(runtime, {z.B, z.T, z.H, z.D}, q.dtype());
    dk = Tensor::empty(runtime, {z.B, z.S, z.Hkv, z.D}, q.dtype());
    dv = Tensor::empty(runtime, {z.B, z.S, z.Hkv, z.D}, q.dtype());
  }
  const Tensor delta = Tensor::empty(runtime, {z.B, z.H, z.T}, sum_dtype);
  const Tensor dq_sum =
      q.dtype() == sum_dtype ? dq : Tensor::empty(runtime, {z.B, z.T, z.H, z.D}, sum_dtype);
  on_float(q.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Accumulate<T>;
    const kernels::AttentionBackward<T> kernel{
        z,
        read<T>(q),
        read<T>(kept.k.get()),
        read<T>(kept.v.get()),
        read<T>(kept.y.get()),
        read<T>(dy_rows),
        kept.lse.get().template data<F>(),
        kept.mask.get() ? kept.mask.get().template data<bool>() : nullptr,
        static_cast<F>(kept.scale),
        delta.template data<F>(),
        write<F>(dq_sum),
        write<T>(dq),
        write<T>(dk),
        write<T>(dv)};
    if (z.S == 0) return dq.fill(0);
    launch(*runtime, kernel, z.B * z.Hkv, items_at_once(z.B * z.Hkv));
  });
  return {dq, dk, dv};
}

}  // namespace

Variable attention(const Variable& q, const Variable& k, const Variable& v,
                   const AttentionOptions& options) {
  const Context in("attention");
  const AttentionSizes z =
      sizes_of(q.value(), k.value(), v.value(), options.key_mask, options.causal);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(z.D)));
  const Tensor q_rows = dense_rows(q.value());
  const Tensor k_rows = dense_rows(k.value());
  const Tensor v_rows = dense_rows(v.value());
  const Tensor mask = options.key_mask ? options.key_mask.contiguous() : Tensor();
  const RuntimePtr& runtime = q.runtime();
  const Tensor y = Tensor::empty(runtime, q.shape(), q.dtype());
  const bool recording = q.tape().recording({q, k, v});
  const Tensor lse =
      recording ? Tensor::empty(runtime, {z.B, z.H, z.T}, accumulate_dtype(q.dtype())) : Tensor();
  on_float(q.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Accumulate<T>;
    const kernels::AttentionForward<T> kernel{z,
                                              read<T>(q_rows),
                                              read<T>(k_rows),
                                              read<T>(v_rows),
                                              write<T>(y),
                                              lse ? lse.template data<F>() : nullptr,
                                              mask ? mask.template data<bool>() : nullptr,
                                              static_cast<F>(scale)};
    const int64_t tile = kernels::attention_query_tile(z.D);
    const int64_t items = z.B * z.H * ((z.T + tile - 1) / tile);
    launch(*runtime, kernel, items, items_at_once(items));
  });
  return q.tape().record(
      "attention", y, {q, k, v},
      [kept = Kept{z, scale, Saved(q_rows), Saved(k_rows), Saved(v_rows), Saved(y), Saved(lse),
                   Saved(mask)}](const Tensor& dy) { return backward(kept, dy); });
}

}  // namespace sherd
