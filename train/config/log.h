// [log]: what a run writes beside metrics.jsonl.
#pragma once

#include <string>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct LogSection {
  bool tensorboard = false;
  std::string trace_steps;
  bool memory = false;

  void fields(auto& v) {
    v("tensorboard", tensorboard, "write events that TensorBoard opens");
    v("trace_steps", trace_steps, "A-B: trace these steps");
    v("memory", memory, "print what memory held at its peak");
  }

  void validate() const {
    check_absent("tensorboard", "a TensorBoard file", tensorboard);
    check_absent("trace_steps", "a trace", !trace_steps.empty());
  }

  bool operator==(const LogSection&) const = default;
};

}  // namespace sherd
