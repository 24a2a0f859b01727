// The workloads that Sherd is measured on, beside other frameworks doing the same work.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/gpt2.h"
#include "train/model_flops.h"

namespace sherd {

/// GPT-2 with a tied head and no dropout, trained by AdamW on `batch` sequences a step.
struct Workload {
  std::string name;
  Gpt2Config model;
  int64_t batch = 0;

  int64_t tokens() const { return batch * model.context; }
  /// Of a step, as train/model_flops.h counts them.
  double flops() const { return model_flops(model.sizes(), tokens()); }
};

/// W1 (6 layers, 384 channels, vocabulary 8,192), W2 (the same, 50,304), W3 (GPT-2 124M, context
/// 64). Throws usage, with the names, for another.
Workload workload(std::string_view name);

/// [batch, context + 1] tokens of step `step`: x0 = step + 1, x ← x · 6364136223846793005 +
/// 1442695040888963407 mod 2⁶⁴, token = (x >> 33) mod vocabulary, row-major (Knuth's MMIX
/// generator).
std::vector<int32_t> workload_tokens(const Workload& w, uint64_t step);

}  // namespace sherd
