// LocalCall: one collective in progress between the ranks of a host: the rendezvous, the copies and
// the sums. Part of LocalComm, which says what each collective is made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "dist/comm/board.h"
#include "dist/comm/local_comm.h"
#include "dist/comm/peer_memory.h"

namespace sherd {

enum LocalOp : uint32_t {
  kAllGather = 1,
  kReduceScatter,
  kAllReduce,
  kBroadcast,
  kAllToAll,
  kExchange
};

/// Of a rank's tensors, in its own memory.
using Addresses = std::vector<const std::byte*>;

/// Where another process's memory is read to, in a room for each rank.
class Scratch {
 public:
  /// Of `bytes`, the same in each call, in the room of `rank`; `from` will be read there.
  std::byte* room(int rank, int ranks, size_t bytes, const std::byte* from);

 private:
  std::vector<std::byte> memory_;
};

/// What outlives a LocalComm as long as calls are in flight. Without the stream, whose thread must
/// not be the last to let go of it.
struct LocalState {
  LocalState(LocalCommParts p, std::shared_ptr<Board> b, int r, std::vector<int> all);

  int size() const { return static_cast<int>(ranks.size()); }
  int world_rank(int r) const { return ranks[static_cast<size_t>(r)]; }

  LocalCommParts parts;
  const std::shared_ptr<Board> board;
  const int rank;
  const std::vector<int> ranks;
  BoardUser user;   // of the call in progress
  Scratch scratch;  // likewise
  /// [id][rank]; grows on the rank's thread while the stream is idle, and entries stay where they
  /// are.
  std::deque<std::vector<Addresses>> resting;
  std::mutex mutex;
  TrafficBytes received{};
  std::mutex observer_mutex;
  std::function<void(const CommSpan&)> observe;
};

/// What all ranks must say alike.
struct CallFacts {
  int64_t elements = 0;
  DType dtype = DType::u8;
  uint64_t details = 14695981039346656037u;  // FNV-1a, a word at a time

  void add(int64_t word) { details = (details ^ static_cast<uint64_t>(word)) * 1099511628211u; }
  void add(DType t) {
    dtype = t;
    add(static_cast<int64_t>(t));
  }
  void add(const Cut& cut) {
    elements += cut.numel();
    add(cut.outer);
    add(cut.inner);
    for (const int64_t start : cut.starts) add(start);
  }
};

/// One tensor of a gather: the ranks' parts, each [outer, n_r, inner] in its memory, come to lie in
/// `whole`.
struct GatheredItem {
  Cut cut;
  std::byte* whole;
  int64_t element;  ///< bytes
};

/// One tensor of a reduction, as the ranks sum it.
struct SummedItem {
  Cut cut;
  DType wire;
  const std::byte* summands = nullptr;  ///< this rank's; halves are made of them in place
  std::byte* sum = nullptr;             ///< where this rank's part of the sum goes
  /// Not null: sums stay halves until nobody reads them, and `num_widened` from here on then become
  /// floats in `widened`. The cut is of the first dim.
  std::byte* halves = nullptr;
  std::byte* widened = nullptr;
  int64_t num_widened = 0;
};

/// Used by one thread, from meet() or know() on.
class LocalCall {
 public:
  LocalCall(LocalState& state, LocalOp op, CallTag tag);

  /// Says what this rank calls with, and waits for the others.
  void meet(Addresses mine, const CallFacts& facts);
  /// Instead of meet(): where the ranks' tensors are is known.
  void know(const std::vector<Addresses>& theirs);
  void leave() { state_.user.leave(); }

  /// Of item i of rank r; null where that rank has none.
  const std::byte* address(int r, size_t i) const { return (*theirs_)[static_cast<size_t>(r)][i]; }

  /// From rank r's memory, not counted.
  void read(int r, std::span<const PeerMemory::Piece> pieces) const;
  /// The same, counted.
  void copy(int r, std::span<const PeerMemory::Piece> pieces);

  /// items[i] is item i of the call; left out where `wanted` has a 0. Empty: all are wanted.
  void gather(const std::vector<GatheredItem>& items, const std::vector<char>& wanted = {});
  /// Sums this rank's part of every item, from meet() to leave(); whether any rank had summands.
  std::vector<char> sum(const std::vector<SummedItem>& items, const CallFacts& facts,
                        bool accumulate);
  /// Of those `found`, when nobody reads the sums any more.
  void widen(const std::vector<SummedItem>& items, const std::vector<char>& found) const;

  /// Sleeps as long as an imitated link takes, adds to the counters, tells the observer.
  void finish() const;

 private:
  /// Elements [begin, begin + n) of a whole, to be summed at once.
  struct Range {
    size_t item;
    int64_t begin, n;
    std::byte* out;
  };

  void start_transfer();
  bool anyone_has(size_t i) const;
  size_t room_bytes() const;
  void add_ranges(size_t i, const SummedItem& item, std::vector<Range>& ranges) const;
  void sum_ranges(const std::vector<SummedItem>& items, const std::vector<Range>& ranges,
                  bool accumulate);
  void sum_range(const SummedItem& item, const Range& range, const std::byte* const* in,
                 bool accumulate);

  LocalState& state_;
  const LocalOp op_;
  const CallTag tag_;
  const double begin_s_;
  double transfer_s_ = 0;
  Addresses mine_;
  std::vector<Addresses> listed_;
  const std::vector<Addresses>* theirs_ = nullptr;
  std::vector<float> sums_;  // before they are rounded to halves
  int64_t received_ = 0;
};

}  // namespace sherd
