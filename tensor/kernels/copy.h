// Copies between any two dtypes and strides of one shape.
#pragma once

#include "tensor/tensor.h"

namespace sherd {

/// to[i] = from[i], converted; shapes are equal, the bytes do not overlap. Rounds to nearest even
/// towards bf16 and f16, truncates towards integers. Does not bump the version.
void copy(const Tensor& from, const Tensor& to);

}  // namespace sherd
