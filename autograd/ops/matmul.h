// Batched matrix product.
#pragma once

#include "autograd/variable.h"

namespace sherd {

/// y = a · b for each index of the leading dims
/// a [..., M, K], b [..., K, N], equal leading dims, f32|f64|bf16|f16, same dtype → y [..., M, N]
/// saves handles of a and b; sums in f32 (f64 for f64)
/// throws usage if the shapes do not fit
Variable matmul(const Variable& a, const Variable& b);

}  // namespace sherd
