// Arithmetic of two variables with NumPy's broadcasting. Kernels: tensor/kernels/arithmetic.h.
#pragma once

#include "autograd/tape.h"

namespace sherd {

/// y = a + b
/// a, b one dtype of f32|f64|bf16|f16; shapes broadcast → y contiguous, same dtype
/// saves nothing; the gradient of what was broadcast is summed in f32
/// throws usage if dtypes differ or shapes do not broadcast
Variable add(const Variable& a, const Variable& b);
/// y = a - b; the rest as add.
Variable sub(const Variable& a, const Variable& b);
/// y = a · b; saves the handles of a and b, each if the other wants a gradient; the rest as add.
Variable mul(const Variable& a, const Variable& b);
/// y = a / b; saves the handles of b, and of a if b wants a gradient; the rest as add.
Variable div(const Variable& a, const Variable& b);

/// y = -x
Variable neg(const Variable& x);
/// y = x · factor; saves nothing
Variable scale(const Variable& x, double factor);

}  // namespace sherd
