#include <Eigen/Core>

#include "tensor/gemm_block.h"

namespace sherd::detail {

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ConstMap = Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>>;
template <class T>
using Map = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;

template <class T>
void run(const Gemm& g) {
  const ConstMap<T> a(static_cast<const T*>(g.a), g.transpose_a ? g.k : g.m,
                      g.transpose_a ? g.m : g.k, Eigen::OuterStride<>(g.lda));
  const ConstMap<T> b(static_cast<const T*>(g.b), g.transpose_b ? g.n : g.k,
                      g.transpose_b ? g.k : g.n, Eigen::OuterStride<>(g.ldb));
  Map<T> c(static_cast<T*>(g.c), g.m, g.n, Eigen::OuterStride<>(g.ldc));
  if (g.bias != nullptr)
    c.rowwise() =
        Eigen::Map<const Eigen::Matrix<T, 1, Eigen::Dynamic>>(static_cast<const T*>(g.bias), g.n);
  else if (!g.accumulate)
    c.setZero();
  if (g.transpose_a && g.transpose_b)
    c.noalias() += a.transpose() * b.transpose();
  else if (g.transpose_a)
    c.noalias() += a.transpose() * b;
  else if (g.transpose_b)
    c.noalias() += a * b.transpose();
  else
    c.noalias() += a * b;
}

}  // namespace

void gemm_eigen(const Gemm& g) {
  on_dtype<float, double>(g.in, "gemm", [&](auto tag) { run<typename decltype(tag)::type>(g); });
}

}  // namespace sherd::detail
