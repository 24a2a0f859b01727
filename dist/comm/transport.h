// Transport: how the ranks of a group meet, and how bytes come from one to another. What a
// collective moves, and how it is summed, is above it (GroupCall); a transport knows bytes only.
// Invariants: all ranks of a group meet and leave alike; whoever waits learns of an abort.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "dist/comm/call_entry.h"
#include "dist/comm/communicator.h"
#include "dist/comm/peer_memory.h"

namespace sherd {

/// Of a rank's tensors, in its own memory; null where it has none.
using Addresses = std::vector<const std::byte*>;

/// One group's, used by one thread at a time. Memory that is shown, offered or fetched into stays
/// where it is until leave() returns; after an error, see give_up().
class Transport {
 public:
  virtual ~Transport() = default;

  /// What can be done with an address of another rank, from most to least.
  enum class Reach {
    here,  ///< used as it is
    host,  ///< fetched from, without that rank's help
    away   ///< compared with null only: that rank offers what this one fetches
  };
  virtual Reach reach(int rank) const = 0;

  /// Says `entry` (its sequence is filled in) and shows `mine`; waits until all ranks have said the
  /// same, and fills `theirs`, the ranks' addresses. Throws Error(comm) after an abort, a timeout,
  /// or where a rank says something else; all ranks do then.
  virtual void meet(CallEntry entry, const Addresses& mine, std::vector<Addresses>& theirs) = 0;
  /// To a rank away: the next bytes that it fetches from this one, as many in one offer as in one
  /// fetch.
  virtual void offer(int rank, std::span<const PeerMemory::Piece> pieces) = 0;
  /// From another rank; they may come as late as wait_fetched(). Pieces of a rank away come in the
  /// order in which it offers them.
  virtual void fetch(int rank, std::span<const PeerMemory::Piece> pieces) = 0;
  virtual void wait_fetched() = 0;
  /// Waits until no other rank reads this one's memory any more.
  virtual void leave() = 0;

  /// After an error: waits, not for long, until the others do not read this rank's memory either,
  /// or keeps `memory`, in which everything lies, for as long as somebody may use it.
  virtual void give_up(std::shared_ptr<const void> memory) = 0;

  /// The most that is fetched of one rank before it is summed.
  virtual size_t room_bytes() const = 0;
};

/// Makes the transports of groups.
class TransportMaker {
 public:
  virtual ~TransportMaker() = default;
  /// Called by all members of a group (ranks of `parent`, rising; `ranks` are theirs in the world),
  /// of which this rank is number `me`. Synchronous; all ranks of `parent` make their groups at
  /// once.
  virtual std::unique_ptr<Transport> make(Communicator& parent, const std::vector<int>& members,
                                          const std::vector<int>& ranks, int me) = 0;
};

}  // namespace sherd
