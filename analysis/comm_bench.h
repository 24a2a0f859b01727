// How fast ranks move bytes between them, beside all of them copying at once: the ceiling that
// sharding's traffic is held against.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dist/comm/rank.h"

namespace sherd {

/// One thing to time; all ranks run it at once.
struct CommOp {
  std::string name;
  double received_bytes = 0;  ///< that a rank receives; of memcpy, that it copies
  std::function<void()> run;  ///< returns when it is done
};

struct CommTime {
  std::string op;
  double median_us = 0, min_us = 0;  ///< of the slowest rank
  double received_bytes = 0;
  double gb_per_s() const { return received_bytes / median_us / 1e3; }
};

/// Runs `ops` in turns, `rounds` times after 3 others; each op twice, of which the second counts.
/// All ranks start it at the same instant. Every rank gets the times; all call this.
std::vector<CommTime> time_in_turns(Rank& rank, const std::vector<CommOp>& ops, int rounds);

/// Buffers of one rank, and what is timed on them: "memcpy" of a whole, then each collective of a
/// whole of `bytes`. f32. As sharding uses them: the parts gathered lie apart from the whole.
/// "resting": as fsdp gathers, without a rendezvous. "beside": by the communication thread, which
/// wakes up for it; else by the rank's own.
class CommBuffers {
 public:
  /// `bytes` is a multiple of 4 × ranks. All ranks make one.
  CommBuffers(Rank& rank, int64_t bytes);
  std::vector<CommOp> ops() const;

  const Tensor& whole() const { return whole_; }
  const Tensor& other() const { return other_; }
  const Tensor& part() const { return part_; }

 private:
  Rank& rank_;
  const int64_t bytes_;
  const Tensor whole_, other_, part_;
  const Cut cut_;
  const Resting resting_;
};

/// Rounds for wholes of `bytes`: enough to be steady, few enough to be quick.
int comm_rounds(int64_t bytes);

/// The same gather and reduction of `count` tiny parameters, in one call and in a call each.
std::vector<CommOp> tiny_ops(Rank& rank, int count, int64_t elements);

}  // namespace sherd
