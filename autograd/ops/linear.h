// Linear: the layer in which most of a transformer's work is done.
#pragma once

#include "autograd/ops/activation.h"
#include "autograd/variable.h"

namespace sherd {

/// y = act(x) · wᵀ + b
/// x [..., in] f32|f64|bf16|f16, w [out, in], b [out] or empty, same dtype → y [..., out]
/// saves x and w (handles); act(x) is computed again in backward. dw and db are f32 (f64 for f64)
/// throws usage if the shapes do not fit
Variable linear(const Variable& x, const Variable& w, const Variable& b = {},
                Activation input_activation = Activation::none);

}  // namespace sherd
