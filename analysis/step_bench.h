// Whole training steps of the standard workloads, timed.
#pragma once

#include <string>

#include "analysis/workload.h"

namespace sherd {

struct StepBenchOptions {
  int threads = 1;
  int warmup = 3;
  int steps = 10;
};

struct StepTimes {
  std::string workload;
  DType dtype = DType::f32;
  double median_ms = 0, min_ms = 0, max_ms = 0;
  double first_step_ms = 0;
  double loss = 0;               ///< mean over tokens, of the last step
  double gemm_ms = 0;            ///< the step's own matrix products alone, same shapes, same run
  double gemm_gflop = 0;         ///< of those
  int64_t peak_bytes = 0;        ///< of the allocator
  int64_t late_allocations = 0;  ///< asked of the system after the second step
  int64_t peak_rss_bytes = 0;    ///< of the process
  int64_t parameters = 0;
};

/// Forward, backward, AdamW (lr 3e-4, betas 0.9, 0.95, decay 0.1 on every parameter, no clipping)
/// on `w`.
StepTimes bench_step(const Workload& w, DType dtype, const StepBenchOptions& options);

/// The same in a child process, so that its peak resident memory is its own. Throws io if the child
/// fails.
StepTimes bench_step_in_child(const Workload& w, DType dtype, const StepBenchOptions& options);

}  // namespace sherd
