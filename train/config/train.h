// [train]: batches, evaluation, and what a step does beside the optimizer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct TrainSection {
  std::int64_t micro_batch = 8;
  std::optional<std::int64_t> accumulate;
  std::optional<std::int64_t> global_batch;
  std::string accumulate_order = "sequential";
  std::int64_t eval_every = 200;
  std::int64_t eval_batches = 20;
  std::int64_t log_every = 1;
  double clip_norm = 1;
  double label_smoothing = 0;
  std::vector<std::string> recompute = {"none"};

  void fields(auto& v) {
    v("micro_batch", micro_batch, "samples a rank computes at once, >= 1");
    v("accumulate", accumulate, "micro-batches a rank adds up for a step; default 1");
    v("global_batch", global_batch, "samples a step over all ranks, instead of accumulate");
    v("accumulate_order", accumulate_order, "how micro-batches are added",
      one_of{"sequential", "tree"});
    v("eval_every", eval_every, "steps between evaluations; 0: none");
    v("eval_batches", eval_batches, "micro-batches an evaluation, >= 1");
    v("log_every", log_every, "steps between lines of progress, >= 1");
    v("clip_norm", clip_norm, "largest global norm of the gradient; 0: no clipping");
    v("label_smoothing", label_smoothing,
      "share of a target's weight spread over all classes, 0 <= s < 1; evaluation has none");
    v("recompute", recompute,
      "activations computed again in backward: none, block, or a list of the others",
      one_of{"none", "block", "activation", "norm", "mlp", "qkv", "attention"});
  }

  void validate() const {
    check_field(micro_batch >= 1 && micro_batch <= INT32_MAX, "micro_batch",
                "expected 1 to 2147483647, got", micro_batch);
    check_field(!(accumulate && global_batch), "global_batch",
                "is instead of accumulate; leave one out");
    check_field(!accumulate || (*accumulate >= 1 && *accumulate <= INT32_MAX), "accumulate",
                "expected 1 to 2147483647, got", accumulate.value_or(0));
    check_field(!global_batch || (*global_batch >= 1 && *global_batch <= INT32_MAX), "global_batch",
                "expected 1 to 2147483647, got", global_batch.value_or(0));
    check_available("accumulate_order", accumulate_order, {"sequential", "tree"});
    check_field(eval_every >= 0, "eval_every", "expected >= 0, got", eval_every);
    check_field(eval_batches >= 1, "eval_batches", "expected >= 1, got", eval_batches);
    check_field(log_every >= 1, "log_every", "expected >= 1, got", log_every);
    check_field(clip_norm >= 0, "clip_norm", "expected >= 0, got", clip_norm);
    check_field(label_smoothing >= 0 && label_smoothing < 1, "label_smoothing",
                "expected 0 <= s < 1, got", label_smoothing);
    check_field(!recompute.empty(), "recompute", "expected at least one; \"none\" is for none");
    for (const auto& r : recompute)
      check_field(recompute.size() == 1 || (r != "none" && r != "block"), "recompute", r,
                  "stands alone");
  }

  /// Micro-batches a rank adds up for a step.
  std::int64_t num_accumulate(std::int64_t ranks) const {
    return global_batch ? *global_batch / (micro_batch * ranks) : accumulate.value_or(1);
  }

  bool operator==(const TrainSection&) const = default;
};

}  // namespace sherd
