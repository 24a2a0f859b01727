// Arithmetic between tensors, without gradients.
#pragma once

#include "tensor/kernels/arithmetic_kernels.h"
#include "tensor/tensor.h"

namespace sherd {

/// y = a f b with NumPy's broadcasting
/// a, b one dtype of f32|f64|bf16|f16, any strides → y contiguous, same dtype
/// halves are computed in f32; throws usage if dtypes differ or shapes do not broadcast
Tensor combine(Arithmetic f, const Tensor& a, const Tensor& b);

/// x · factor, contiguous
Tensor scaled(const Tensor& x, double factor);

}  // namespace sherd
