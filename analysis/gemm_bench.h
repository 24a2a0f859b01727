// How fast this machine multiplies matrices: the ceiling that a training step is held against.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/workload.h"
#include "tensor/runtime.h"

namespace sherd {

/// One matrix product of a training step.
struct GemmShape {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  bool wide;      ///< the result is f32 whatever the inputs: a weight gradient, or logits
  int64_t count;  ///< how often in a step
};

/// Every matrix product of a step of `w`, attention's apart, as the ops issue them.
std::vector<GemmShape> gemms_of(const Workload& w, DType dtype);

/// Multiplications and additions of one of them.
inline double flops(const GemmShape& s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
}

/// Runs the products of `shapes` on buffers of their own, `repeats` times, and returns the seconds
/// of one round (median over the repeats, each shape counted `count` times).
double time_gemms(const RuntimePtr& runtime, const std::vector<GemmShape>& shapes, DType dtype,
                  int repeats);

/// GFLOP/s: geometric mean over the shapes of W1's layers.
double gemm_gflops(const RuntimePtr& runtime, DType dtype, int repeats = 5);

}  // namespace sherd
