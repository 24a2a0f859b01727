// Embedding: rows of a table by index.
#pragma once

#include "autograd/tape.h"

namespace sherd {

/// y[..., c] = table[indices[...], c]
/// table [V, C] f32|f64|bf16|f16, indices [...] i32|i64 → y [..., C] like table
/// saves indices; the gradient adds rows into the table's total, f32 (f64 for f64), in index order
/// throws usage, naming the index and its position, if an index is not in [0, V)
Variable embedding(const Variable& table, const Tensor& indices);

}  // namespace sherd
