// Root-mean-square normalisation over the last dim.
#pragma once

#include "autograd/tape.h"

namespace sherd {

/// y = x / sqrt(mean(x², C) + eps) · weight
/// x [..., C] f32|f64|bf16|f16; weight [C] same dtype, or an empty Variable → y like x
/// saves x and rstd [...] f32; sums over a row, and over rows in backward, in a fixed order
/// throws usage if weight is not [C] of x's dtype
/// Zhang & Sennrich 2019, eq. 4
Variable rms_norm(const Variable& x, const Variable& weight, double eps = 1e-5);

}  // namespace sherd
