// SwiGLU: a gate over the last dim.
#pragma once

#include "autograd/tape.h"

namespace sherd {

/// y_i = silu(x_i) · x_{F+i}, i < F: x is the gate, then what it lets through
/// x [..., 2F] f32|f64|bf16|f16 → y [..., F]
/// saves the handle of x; halves are computed in f32
/// throws usage unless the last dim is even
/// Shazeer 2020, "GLU Variants Improve Transformer", eq. 5
Variable swiglu(const Variable& x);

}  // namespace sherd
