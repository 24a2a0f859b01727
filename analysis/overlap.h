// How much communication a step hid behind computation, by the clocks of the communication threads.
#pragma once

#include <span>

#include "dist/comm/communicator.h"

namespace sherd {

struct Overlap {
  double comm_s = 0;     ///< that gathers and reductions took, where they ran
  double exposed_s = 0;  ///< of that, the rank waited
  /// What could be hidden: all but the first gather and the last reduction, which have no
  /// computation beside them, and no more than there is computation.
  double hideable_s = 0;

  double share_hidden() const { return hideable_s > 0 ? (comm_s - exposed_s) / hideable_s : 0; }
};

/// Of one step of one rank. `spans`: what ran in it, in order (Communicator::set_observer).
/// `exposed_s`: ScheduleCounters'. `step_s`: what the step took.
Overlap overlap_of(std::span<const CommSpan> spans, double exposed_s, double step_s);

}  // namespace sherd
