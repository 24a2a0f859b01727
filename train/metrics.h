// metrics.jsonl: one object a step, numbers printed so that they read back exactly.
// Invariant: the file's lines are steps 1, 2, … of one run, also after it was resumed.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace sherd {

/// Payload bytes that a rank received, by purpose; all zero with one rank.
struct CommBytes {
  std::int64_t all_gather = 0, reduce_scatter = 0, all_reduce = 0;
  std::int64_t control = 0, eval = 0, checkpoint = 0, padding = 0;
};

struct StepMetrics {
  std::int64_t step = 0;           ///< optimizer steps made, this one included
  std::int64_t tokens = 0;         ///< trained on since the run began
  std::int64_t epoch = 0;          ///< of this step's first sample, from 0
  double loss = 0;                 ///< mean over this step's tokens
  std::optional<double> val_loss;  ///< after this step, where it was evaluated
  double grad_norm = 0;            ///< before clipping; not finite where the step was skipped
  double lr = 0;
  double step_ms = 0;  ///< evaluation and saving not included
  double tokens_per_s = 0;
  std::optional<double> sol;  ///< model FLOP/s ÷ this machine's GEMM rate, if measured
  std::int64_t peak_bytes =
      0;  ///< the most that was allocated during this step, evaluation included
  CommBytes comm_bytes;
  double exposed_comm_ms = 0;
  std::optional<double> loss_scale;  ///< of this step, where it is dynamic
  bool skipped = false;              ///< gradients overflowed: the optimizer was not run
};

/// One line, without the newline.
std::string metrics_line(const StepMetrics& metrics);

class MetricsFile {
 public:
  /// Keeps the lines of steps up to `steps_kept` of a file that is there, and appends behind them.
  /// throws io
  MetricsFile(const std::string& path, std::int64_t steps_kept);
  /// The line is in the file when this returns. throws io
  void append(const StepMetrics& metrics);

 private:
  std::string path_;
  std::ofstream out_;
};

}  // namespace sherd
