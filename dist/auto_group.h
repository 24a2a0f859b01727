// group = auto: units chosen by what they cost and need. Pure: sizes, a link and a cap go in, units
// and a reason come out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/shard_plan.h"

namespace sherd {

/// What a choice depends on. The defaults are of two ranks on one host.
struct GroupModel {
  int shards = 2;
  int64_t prefetch = 1;       ///< units gathered ahead
  double bytes_per_s = 10e9;  ///< that a rank receives
  double latency_s = 20e-6;   ///< of a collective
  /// Of gathered units and of the two units whose whole gradients exist; 0: none.
  int64_t cap_bytes = 0;
};

struct AutoGroups {
  UnitOf unit_of;
  std::string why;  ///< one line
};

/// Blocks (unit_by_block) in the order of `all`, joined by as many as cost a step the least:
///   cost = 3 latency · units + what the first gather and the last reduction take,
///   which nothing hides.
/// Where not even one block is within the cap, blocks are cut between their parameters; `why` says
/// so where one parameter alone is beyond it. What is of no block stays the root.
AutoGroups auto_groups(const std::vector<NamedParameter>& all, const GroupModel& model);

}  // namespace sherd
