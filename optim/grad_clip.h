// The norm of all gradients together, and the factor that keeps it below a bound.
// Invariant: the same bits for any number of threads or ranks, and any cut along dim 0.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "optim/optimizer.h"

namespace sherd {

enum class NormKind { two, infinity };

/// How words of all ranks become one, in place; both empty on one rank. A rank brings each row
/// once: whoever holds replicas lets one rank bring them.
struct NormExchange {
  std::function<void(std::span<int64_t>)> sum;
  std::function<void(std::span<int64_t>)> max;
};

struct GradNorm {
  double norm = 0;         ///< NaN (two) or infinity if a gradient of any rank is not finite
  std::string not_finite;  ///< the first slot of this rank with such a gradient; empty: none
};

/// two: √Σ g², infinity: max |g|, over the gradients of all slots and ranks, times `scale`
/// gradients f32 or f64, contiguous; slots without one count nothing; 0 on meta
/// a row's squares are summed in f64 in fixed order (in segments of 65,536 columns), rows and
/// segments without rounding; reads each gradient once
/// communicates 568 bytes (two) or 8 (infinity); every rank waits for the slowest
/// throws numeric if `scale` is not finite or negative
GradNorm grad_norm(std::span<const Slot> slots, double scale, NormKind kind,
                   const NormExchange& exchange = {});

/// min(1, max_norm / (norm + 1e-6)); 1 where max_norm is 0 (no clipping)
/// throws numeric if the norm is not finite, so that no step is made with it
double clip_factor(double norm, double max_norm);

}  // namespace sherd
