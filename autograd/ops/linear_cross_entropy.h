// The language model's head and its loss in one op, so that the logits are never whole in memory.
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "autograd/variable.h"

namespace sherd {

/// Bytes of logits and their gradient that are live at once, at most (one row at least).
inline constexpr int64_t kLogitsChunkBytes = int64_t{32} << 20;

/// Rows of a chunk over `rows` rows of h and `vocab` classes: by shape alone, a multiple of 16
/// where the limit allows.
int64_t linear_cross_entropy_rows(int64_t rows, int64_t vocab, DType dtype);

/// loss = cross_entropy(h · wᵀ, targets, options), in chunks of rows, each with its gradient
/// h [N, C] f32|f64|bf16|f16, w [V, C] same dtype, targets [N] i32|i64 → loss scalar, f32 (f64 for
/// f64), of logits in that dtype
/// saves dh like h and dw f32 (f64 for f64) instead of the logits
/// throws usage if the shapes do not fit, and as cross_entropy
LossResult linear_cross_entropy(const Variable& h, const Variable& w, const Tensor& targets,
                                const CrossEntropyOptions& options = {});

}  // namespace sherd
