// STREAM's triad, a = b + s·c: what this machine's memory gives at best, which ops that move memory
// are held against (J. D. McCalpin, STREAM).
#pragma once

#include "tensor/tensor.h"

namespace sherd {

/// f32 arrays that no cache holds.
class Triad {
 public:
  static constexpr int64_t kElements = 32 << 20;
  static constexpr double kBytes = 3.0 * sizeof(float) * kElements;  ///< read and written in a run

  explicit Triad(const RuntimePtr& runtime);
  void run() const;

 private:
  const Tensor a_, b_, c_;
};

}  // namespace sherd
