#include "autograd/ops/matmul.h"

#include "autograd/tape.h"
#include "tensor/gemm.h"

namespace sherd {

namespace {

/// op(a) · op(b) per item of the batch; a and b contiguous.
Tensor product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b) {
  const int d = a.dims();
  const int64_t m = a.size(transpose_a ? d - 1 : d - 2);
  const int64_t k = a.size(transpose_a ? d - 2 : d - 1);
  const int64_t n = b.size(transpose_b ? d - 2 : d - 1);
  Shape shape = a.shape();
  shape[d - 2] = m;
  shape[d - 1] = n;
  Tensor c = Tensor::empty(a.runtime(), shape, a.dtype());
  gemm(*a.runtime(), {.m = m,
                      .n = n,
                      .k = k,
                      .a = a.raw(),
                      .lda = a.size(-1),
                      .transpose_a = transpose_a,
                      .b = b.raw(),
                      .ldb = b.size(-1),
                      .transpose_b = transpose_b,
                      .c = c.raw(),
                      .ldc = n,
                      .in = a.dtype(),
                      .out = a.dtype(),
                      .batch = a.shape().rows(d - 2),
                      .stride_a = m * k,
                      .stride_b = k * n,
                      .stride_c = m * n});
  return c;
}

}  // namespace

Variable matmul(const Variable& a, const Variable& b) {
  const Context in("matmul");
  const int d = a.value().dims();
  bool fits = d >= 2 && b.value().dims() == d && a.size(-1) == b.size(-2);
  for (int i = 0; fits && i < d - 2; ++i) fits = a.shape()[i] == b.shape()[i];
  check(fits, "matmul wants a [..., M, K] and b [..., K, N] with equal leading dims, got",
        a.shape(), "and", b.shape());
  check(a.dtype() == b.dtype(), "matmul wants one dtype, got", a.dtype(), "and", b.dtype());
  const Tensor left = a.value().contiguous();
  const Tensor right = b.value().contiguous();
  return a.tape().record("matmul", product(left, false, right, false), {a, b},
                         [want_a = a.requires_grad(), want_b = b.requires_grad(),
                          left = Saved(left), right = Saved(right)](const Tensor& dy_any) {
                           const Tensor dy = dy_any.contiguous();
                           Grads grads(2);
                           if (want_a) grads[0].dense = product(dy, false, right.get(), true);
                           if (want_b) grads[1].dense = product(left.get(), true, dy, false);
                           return grads;
                         });
}

}  // namespace sherd
