// [log]: what a run writes beside metrics.jsonl.
#pragma once

#include <string>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct LogSection {
  bool tensorboard = true;
  std::string trace_steps;
  bool memory = false;
  std::int64_t sample = 0;
  std::string sample_prompt = "\n";

  void fields(auto& v) {
    v("tensorboard", tensorboard, "write events that TensorBoard opens");
    v("trace_steps", trace_steps, "A-B: trace these steps");
    v("memory", memory, "print what memory held at its peak");
    v("sample", sample, "tokens of text that are generated and printed at the end; 0: none");
    v("sample_prompt", sample_prompt, "the text that the sample goes on from");
  }

  void validate() const {
    check_absent("trace_steps", "a trace", !trace_steps.empty());
    check_field(sample >= 0, "sample", "expected >= 0, got", sample);
    check_field(sample == 0 || !sample_prompt.empty(), "sample_prompt",
                "is empty; the model needs something to go on from");
  }

  bool operator==(const LogSection&) const = default;
};

}  // namespace sherd
