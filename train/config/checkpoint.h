// [checkpoint]: when state is saved and how much of it is kept.
#pragma once

#include <string>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct CheckpointSection {
  std::int64_t every = 0;
  std::int64_t keep = 2;
  bool async = false;
  std::string dir;

  void fields(auto& v) {
    v("every", every, "steps between checkpoints; 0: only at the end and when interrupted");
    v("keep", keep, "the newest that are kept, >= 1");
    v("async", async, "save while training goes on");
    v("dir", dir, "default: checkpoints in the run's folder");
  }

  void validate() const {
    check_field(every >= 0, "every", "expected >= 0, got", every);
    check_field(keep >= 1, "keep", "expected >= 1, got", keep);
    check_absent("async", "saving while training goes on", async);
  }

  bool operator==(const CheckpointSection&) const = default;
};

}  // namespace sherd
