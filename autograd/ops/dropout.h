#pragma once

#include "autograd/tape.h"
#include "tensor/random.h"

namespace sherd {

/// y[i] = x[i] / (1 - p) where element i of the key's sequence is kept, else 0; i row-major
/// x f32|f64|bf16|f16, any shape → y like x, contiguous
/// saves nothing but the key: backward draws the mask again. p = 0 gives x itself
/// kept: the word of element i, as random_words gives it, is at least p · 2^32
/// throws usage unless 0 <= p < 1
/// Srivastava et al. 2014
Variable dropout(const Variable& x, double p, RandomKey key);

}  // namespace sherd
