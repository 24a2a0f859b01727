// Rotary position embedding: pairs of a head's channels turn by angles that grow with the position.
// T positions, D head dim
#pragma once

#include <cstdint>
#include <optional>

#include "autograd/tape.h"

namespace sherd {

/// How Llama 3 stretches the angles for contexts longer than it was first trained on: frequencies
/// of fewer than `low_freq_factor` turns in `original_context` are divided by `factor`, those of
/// more than `high_freq_factor` stay, those between go from one to the other.
/// Dubey et al. 2024, "The Llama 3 Herd of Models"; the rule is that of Meta's reference code
struct Llama3Scaling {
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_context = 8192;
};

struct RotaryOptions {
  double theta = 10000;
  std::optional<Llama3Scaling> scaling = std::nullopt;
};

/// cos(p ω_i) for i < D/2, then sin(p ω_i), of the positions p in [0, positions);
/// ω_i = theta^(-2i/D), scaled
/// → [positions, D] f32, or f64; angles are computed in f64
/// throws usage unless D is even, theta > 0, factor >= 1, 0 < low_freq_factor < high_freq_factor
/// and original_context > 0
Tensor rotary_table(const RuntimePtr& runtime, int64_t positions, int64_t head_dim,
                    const RotaryOptions& options = {}, DType dtype = DType::f32);

/// Of the first `heads` heads of x [B, T, H, D], channels i and i + D/2 are turned by the angle of
/// row t of the table: y_i = x_i cos - x_{i+D/2} sin, y_{i+D/2} = x_{i+D/2} cos + x_i sin. The
/// other heads (values beside queries and keys) are copied.
/// x f32|f64|bf16|f16, table [T, D] f32 (f64 for f64) without gradient → y like x, contiguous
/// saves the table's handle
/// throws usage on other shapes or dtypes
/// Su et al. 2021, RoFormer, eq. 34, with the pairs that Hugging Face's Llama has
Variable rotary(const Variable& x, const Tensor& table, int64_t heads);

}  // namespace sherd
