// Cross-entropy of logits and class indices, and what its fused forms share.
#pragma once

#include <cstdint>

#include "autograd/tape.h"

namespace sherd {

/// A sum over tokens, and how many there were: the one division is the trainer's.
struct LossResult {
  Variable loss;       ///< scalar f32 (f64 for f64)
  int64_t tokens = 0;  ///< rows whose target is not ignore_index; on meta all rows
};

struct CrossEntropyOptions {
  int64_t ignore_index = -1;
  /// Of a target's weight, spread over all classes.
  /// Szegedy et al. 2016, "Rethinking the Inception Architecture", section 7
  double label_smoothing = 0;
};

/// loss = Σ_n (log Σ_v exp(logits[n, v]) - Σ_v q[n, v] logits[n, v]), n with targets[n] ≠
/// ignore_index; q is 1 - label_smoothing at the target, and label_smoothing / V more everywhere
/// logits [N, V] f32|f64|bf16|f16, targets [N] i32|i64 → loss scalar, f32 (f64 for f64)
/// saves logits and two numbers a row; rows are summed in f64, in order
/// throws usage if a target is neither ignore_index nor in [0, V), or label_smoothing not in [0, 1]
LossResult cross_entropy(const Variable& logits, const Tensor& targets,
                         const CrossEntropyOptions& options = {});

/// Targets [N] as contiguous i32, and how many are not ignore_index (on meta all are).
struct CheckedTargets {
  Tensor indices;
  int64_t tokens = 0;
};

/// throws usage, naming the first wrong target and its position, if one is neither ignore_index nor
/// in [0, classes); if targets is not i32|i64 [rows]; or if label_smoothing is not in [0, 1]
CheckedTargets check_targets(const Tensor& targets, int64_t rows, int64_t classes,
                             const CrossEntropyOptions& options);

}  // namespace sherd
