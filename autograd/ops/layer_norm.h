// Layer normalisation over the last dim.
#pragma once

#include "autograd/tape.h"

namespace sherd {

/// y = (x - mean(x, C)) / sqrt(var(x, C) + eps) · weight + bias
/// x [..., C] f32|f64|bf16|f16; weight, bias [C] same dtype, or an empty Variable → y like x
/// saves x, mean and rstd [...] f32; sums over a row, and over rows in backward, in a fixed order
/// throws usage if weight or bias is not [C] of x's dtype
/// Ba, Kiros & Hinton 2016, eq. 4
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    double eps = 1e-5);

}  // namespace sherd
