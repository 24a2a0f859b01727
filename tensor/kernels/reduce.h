// Reductions over any dims, without gradients.
#pragma once

#include <span>

#include "tensor/kernels/reduce_kernels.h"
#include "tensor/tensor.h"

namespace sherd {

/// The shape of x with `dims` (each once, negative from the back; none: all) as 1.
Shape kept_shape(const Shape& x, std::span<const int> dims);

/// y[kept] = scale · Σ over the dims in which `kept` is 1 and x is not; y has the shape `kept`
/// x f32|f64|bf16|f16, any strides → y f32 (f64 for f64), contiguous
/// the order of additions depends on the shape alone; more than 1,024 rows (16,384 elements) are
/// added in chunks, whose sums are added then
Tensor reduce_sum(const Tensor& x, const Shape& kept, double scale = 1);

/// The same with the largest element, NaN if there is one; throws usage if there is none.
Tensor reduce_max(const Tensor& x, const Shape& kept);

/// The gradient of broadcasting to x's shape: sums x over the dims that `shape` lacks or has as 1.
/// → f32 (f64 for f64), or x itself where nothing is to be summed
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace sherd
