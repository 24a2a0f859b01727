#include "autograd/ops/linear_cross_entropy.h"

#include <algorithm>

#include "autograd/ops/cross_entropy_kernels.h"
#include "autograd/tape.h"
#include "tensor/gemm.h"
#include "tensor/kernels/arithmetic_kernels.h"
#include "tensor/kernels/launch.h"

// Dim letters: N rows, R rows of a chunk, C channels, V vocabulary.

namespace sherd {

namespace {

/// What gradients are formed times, and divided by at the end: an f16 one would lose what is small,
/// as it is formed before it is known what backward starts from. 2 · 2^8 · |w| stays below 65,504.
double gradient_scale(DType dtype) { return dtype == DType::f16 ? 256 : 1; }

struct Problem {
  Tensor h_NC, w_VC, targets_N;
  CrossEntropyOptions options;
  int64_t N, C, V;
};

struct Gradients {
  Tensor dh_NC, dw_VC;
};

/// logits_RV = h_RC · w_VCᵀ
Tensor logits_of(const Problem& p, const Tensor& h_RC) {
  const CategoryScope scope(*h_RC.runtime(), Category::logits);
  Tensor logits_RV =
      Tensor::empty(h_RC.runtime(), {h_RC.size(0), p.V}, accumulate_dtype(h_RC.dtype()));
  gemm(*h_RC.runtime(), {.m = h_RC.size(0),
                         .n = p.V,
                         .k = p.C,
                         .a = h_RC.raw(),
                         .lda = p.C,
                         .b = p.w_VC.raw(),
                         .ldb = p.C,
                         .transpose_b = true,
                         .c = logits_RV.raw(),
                         .ldc = p.V,
                         .in = h_RC.dtype(),
                         .out = logits_RV.dtype()});
  return logits_RV;
}

/// dh_RC = dlogits_RV · w_VC, and dw_VC += dlogits_RVᵀ · h_RC
void add_gradients(const Problem& p, const Tensor& h_RC, const Tensor& dlogits_RV,
                   const Tensor& dh_RC, const Tensor& dw_VC, bool first) {
  Runtime& runtime = *h_RC.runtime();
  const int64_t R = h_RC.size(0);
  if (dh_RC)
    gemm(runtime, {.m = R,
                   .n = p.C,
                   .k = p.V,
                   .a = dlogits_RV.raw(),
                   .lda = p.V,
                   .b = p.w_VC.raw(),
                   .ldb = p.C,
                   .c = dh_RC.raw(),
                   .ldc = p.C,
                   .in = h_RC.dtype(),
                   .out = h_RC.dtype()});
  if (dw_VC)
    gemm(runtime, {.m = p.V,
                   .n = p.C,
                   .k = R,
                   .a = dlogits_RV.raw(),
                   .lda = p.V,
                   .transpose_a = true,
                   .b = h_RC.raw(),
                   .ldb = p.C,
                   .c = dw_VC.raw(),
                   .ldc = p.C,
                   .accumulate = !first,
                   .in = h_RC.dtype(),
                   .out = dw_VC.dtype()});
}

/// The sum of the rows' losses; fills the gradients that are there.
double run_chunks(const Problem& p, const Gradients& g) {
  const RuntimePtr& runtime = p.h_NC.runtime();
  const bool wanted = g.dh_NC || g.dw_VC;
  const int64_t rows = linear_cross_entropy_rows(p.N, p.V, p.h_NC.dtype());
  double loss = 0;
  for (int64_t first = 0; first < p.N; first += rows) {
    const int64_t R = std::min(rows, p.N - first);
    const Tensor h_RC = p.h_NC.slice(0, first, first + R);
    const Tensor logits_RV = logits_of(p, h_RC);
    Tensor dlogits_RV = logits_RV;
    if (wanted && logits_RV.dtype() != p.h_NC.dtype()) {
      const CategoryScope scope(*runtime, Category::logits);
      dlogits_RV = Tensor::empty(runtime, {R, p.V}, p.h_NC.dtype());
    }
    const CategoryScope staging(*runtime, Category::staging);
    const Tensor row_loss_R = Tensor::empty(runtime, {R}, DType::f64);
    on_dtype<float, double, bf16, f16>(p.h_NC.dtype(), "linear_cross_entropy", [&](auto tag) {
      using D = typename decltype(tag)::type;
      using A = Accumulate<D>;
      launch(*runtime,
             kernels::CrossEntropyRows<A, D>{
                 .logits = logits_RV.data<A>(),
                 .targets = p.targets_N.data<int32_t>() + (runtime->device().is_meta() ? 0 : first),
                 .ignore_index = static_cast<int32_t>(p.options.ignore_index),
                 .columns = p.V,
                 .scale = static_cast<A>(gradient_scale(p.h_NC.dtype())),
                 .smoothing = static_cast<A>(p.options.label_smoothing),
                 .row_loss = row_loss_R.data<double>(),
                 .row_stats = nullptr,
                 .dlogits = wanted ? dlogits_RV.data<D>() : nullptr,
                 .exps = wanted ? logits_RV.data<A>() : nullptr},
             R, block_of(p.V));
    });
    if (wanted)
      add_gradients(p, h_RC, dlogits_RV, g.dh_NC ? g.dh_NC.slice(0, first, first + R) : Tensor(),
                    g.dw_VC, first == 0);
    if (!runtime->device().is_meta())
      for (int64_t r = 0; r < R; ++r) loss += row_loss_R.data<double>()[r];
  }
  if (p.N == 0 && g.dw_VC) g.dw_VC.fill(0);
  return loss;
}

/// t *= the one value of `factor`, which is 1 for a loss that nothing follows.
template <class A>
void scale_by(const Tensor& t, A factor) {
  if (!t || factor == 1) return;
  on_dtype<float, double, bf16, f16>(t.dtype(), "linear_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(*t.runtime(),
           kernels::Scale<T>{t.data<T>(), t.data<T>(), static_cast<Accumulate<T>>(factor)},
           t.numel(), 16384);
  });
}

}  // namespace

int64_t linear_cross_entropy_rows(int64_t rows, int64_t vocab, DType dtype) {
  // Logits are f32 (f64); a half dtype's gradient is a copy beside them.
  const auto row_bytes = vocab * static_cast<int64_t>(size_of(accumulate_dtype(dtype)) +
                                                      (size_of(dtype) == 2 ? 2 : 0));
  const int64_t fit = kLogitsChunkBytes / std::max<int64_t>(1, row_bytes);
  return std::clamp<int64_t>(fit >= 16 ? fit / 16 * 16 : fit, 1, std::max<int64_t>(rows, 1));
}

LossResult linear_cross_entropy(const Variable& h, const Variable& w, const Tensor& targets,
                                const CrossEntropyOptions& options) {
  const Context in("linear_cross_entropy");
  check(h.value().dims() == 2 && w.value().dims() == 2 && h.size(1) == w.size(1),
        "linear_cross_entropy wants h [N, C] and w [V, C], got", h.shape(), "and", w.shape());
  check(h.dtype() == w.dtype(), "linear_cross_entropy wants one dtype, got h", h.dtype(), "and w",
        w.dtype());
  const CheckedTargets checked = check_targets(targets, h.size(0), w.size(0), options);
  const Problem p{h.value().contiguous(),
                  w.value().contiguous(),
                  checked.indices,
                  options,
                  h.size(0),
                  h.size(1),
                  w.size(0)};
  const RuntimePtr& runtime = h.runtime();

  Gradients g;
  if (h.tape().recording({h})) g.dh_NC = Tensor::empty_like(p.h_NC);
  if (h.tape().recording({w})) {
    const CategoryScope scope(*runtime, Category::grads);
    g.dw_VC = Tensor::empty(runtime, {p.V, p.C}, accumulate_dtype(w.dtype()));
  }
  const double loss = run_chunks(p, g);
  return {h.tape().record(
              "linear_cross_entropy", Tensor::full(runtime, {}, loss, accumulate_dtype(h.dtype())),
              {h, w},
              [g, dtype = h.dtype()](const Tensor& dy) {
                if (!dy.device().is_meta())
                  on_dtype<float, double>(dy.dtype(), "linear_cross_entropy", [&](auto tag) {
                    using A = typename decltype(tag)::type;
                    const A factor = *dy.data<A>() / static_cast<A>(gradient_scale(dtype));
                    scale_by(g.dh_NC, factor);
                    scale_by(g.dw_VC, factor);
                  });
                return Grads{g.dh_NC, g.dw_VC};
              }),
          checked.tokens};
}

}  // namespace sherd
