// GroupCall: one collective in progress between the ranks of a group: who reads what of whom, and
// in which order it is summed. Part of GroupComm, which says what each collective is made of; the
// transport moves the bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "dist/comm/group_comm.h"
#include "dist/comm/transport.h"
#include "dist/comm/wire_sum.h"

namespace sherd {

enum GroupOp : uint32_t {
  kAllGather = 1,
  kReduceScatter,
  kAllReduce,
  kBroadcast,
  kAllToAll,
  kExchange
};

/// Where other ranks' bytes are read to, in a room for each of them.
class Scratch {
 public:
  /// Of `bytes`, the same in each call, in the room of `rank`; `from` will be read there.
  std::byte* room(int rank, int ranks, size_t bytes, const std::byte* from);

 private:
  std::vector<std::byte> memory_;
};

/// What outlives a GroupComm as long as calls are in flight. Without the stream, whose thread must
/// not be the last to let go of it.
struct GroupState {
  GroupState(GroupParts p, std::unique_ptr<Transport> t, int r, std::vector<int> all);

  int size() const { return static_cast<int>(ranks.size()); }
  int world_rank(int r) const { return ranks[static_cast<size_t>(r)]; }

  GroupParts parts;
  const std::unique_ptr<Transport> transport;
  const int rank;
  const std::vector<int> ranks;
  /// Whether all ranks' memory is used as it is; whether it can be read without their help.
  const bool in_place, one_sided;
  // --- of the call in progress; others may read and write it
  Scratch scratch;
  std::vector<std::byte> staged;  // words on their way
  Addresses mine;
  std::vector<Addresses> theirs;
  // ---
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
  uint64_t details = kHashOfNothing;

  void add(int64_t word) { details = hash_on(details, word); }
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

/// Used by one thread, from meet() or know() on.
class GroupCall {
 public:
  GroupCall(GroupState& state, GroupOp op, CallTag tag);

  /// Says what this rank calls with, and waits for the others.
  void meet(Addresses mine, const CallFacts& facts);
  /// Instead of meet(): where the ranks' tensors are is known.
  void know(const std::vector<Addresses>& theirs);
  void leave() { state_.transport->leave(); }

  /// Of item i of rank r; null where that rank has none.
  const std::byte* address(int r, size_t i) const { return (*theirs_)[static_cast<size_t>(r)][i]; }

  /// For a rank that cannot read this one's memory: what it fetches next. Else nothing.
  void offer(int r, std::span<const PeerMemory::Piece> pieces);
  /// From rank r's memory, not counted; there after wait_fetched().
  void read(int r, std::span<const PeerMemory::Piece> pieces);
  /// The same, counted.
  void copy(int r, std::span<const PeerMemory::Piece> pieces);
  void wait_fetched() { state_.transport->wait_fetched(); }

  /// items[i] is item i of the call; left out where `wanted` has a 0. Empty: all are wanted.
  void gather(const std::vector<GatheredItem>& items, const std::vector<char>& wanted = {});
  /// Sums this rank's part of every item, from meet() to leave(); whether any rank had summands.
  std::vector<char> sum(const std::vector<SummedItem>& items, const CallFacts& facts);

  /// Sleeps as long as an imitated link takes, adds to the counters, tells the observer.
  void finish() const;

 private:
  void start_transfer();
  void offer_summands(const std::vector<SummedItem>& items, const std::vector<char>& found);
  void sum_batch(const std::vector<SummedItem>& items, std::span<const SumRange> batch);

  GroupState& state_;
  const GroupOp op_;
  const CallTag tag_;
  const double begin_s_;
  double transfer_s_ = 0;
  const std::vector<Addresses>* theirs_ = nullptr;
  std::vector<PeerMemory::Piece> pieces_;
  std::vector<const std::byte*> in_;  // [range][rank] of a batch
  std::vector<float> sums_;           // before they are rounded to halves
  int64_t received_ = 0;
};

}  // namespace sherd
