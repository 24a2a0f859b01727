// Views of a tensor as Eigen objects, without copies. Opt-in: nothing else in tensor/ includes
// Eigen. A view is valid as long as the tensor's bytes are; it does not keep them.
#pragma once

#include <Eigen/Core>

#include "tensor/tensor.h"

namespace sherd {

template <class T>
using EigenMatrix = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                               Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
template <class T>
using EigenVector =
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>, Eigen::Unaligned, Eigen::InnerStride<>>;

/// [R, C] as a matrix of any strides; T f32|f64|i32|i64|u8 as the tensor's dtype
/// throws usage unless it has two dims; on meta; for another dtype or released bytes
template <class T>
EigenMatrix<T> eigen_matrix(const Tensor& t) {
  check(t.dims() == 2, "eigen_matrix wants two dims, the tensor is", t.shape());
  check(!t.device().is_meta(), "a meta tensor has no values");
  return EigenMatrix<T>(t.data<T>(), t.size(0), t.size(1), {t.strides()[0], t.strides()[1]});
}

/// [N] as a column of any stride; the rest as eigen_matrix with one dim.
template <class T>
EigenVector<T> eigen_vector(const Tensor& t) {
  check(t.dims() == 1, "eigen_vector wants one dim, the tensor is", t.shape());
  check(!t.device().is_meta(), "a meta tensor has no values");
  return EigenVector<T>(t.data<T>(), t.size(0), Eigen::InnerStride<>(t.strides()[0]));
}

}  // namespace sherd
