// Softmax and its logarithm over the last dim.
#pragma once

#include "autograd/tape.h"

namespace sherd {

/// y = exp(x - max(x, C)) / Σ_C exp(x - max(x, C))
/// x [..., C] f32|f64|bf16|f16 → y like x
/// saves y; sums over a row in an order that C alone decides
/// throws usage if x is a scalar
Variable softmax(const Variable& x);

/// y = x - log Σ_C exp(x), without overflow; the rest as softmax
Variable log_softmax(const Variable& x);

}  // namespace sherd
