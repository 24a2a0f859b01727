#pragma once

#include "tensor/tensor.h"

namespace sherd {

/// total += x, element by element; equal shapes, contiguous. f32, f64, bf16 and f16 totals; x of
/// the same dtype, or bf16/f16 into an f32 total. Bumps the version of total.
void accumulate(const Tensor& total, const Tensor& x);

}  // namespace sherd
