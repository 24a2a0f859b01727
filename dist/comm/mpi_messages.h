// MpiMessages: bytes from one rank to another by MPI, in pieces that lie anywhere in memory.
// Nothing happens between calls of progress(), and nothing in it waits. Invariant: MPI is called by
// one thread at a time; what MPI may still read or write stays in memory for as long as this lives.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "dist/comm/peer_memory.h"

namespace sherd {

/// Shared by all groups of a rank; used by one thread at a time.
class MpiMessages {
 public:
  /// Among `ranks` of MPI_COMM_WORLD.
  explicit MpiMessages(int ranks);
  ~MpiMessages();
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  /// Queues the bytes at the pieces' `from`; the other side receives as many at once. They come in
  /// the order in which they are sent.
  void send(int rank, std::span<const PeerMemory::Piece> pieces);
  /// Queues the next bytes of `rank`, to the pieces' `to`.
  void receive(int rank, std::span<const PeerMemory::Piece> pieces);

  /// Begins what is queued, as far as a few messages a rank may be on their way at once. Whether
  /// any has come to its end since the last call. Throws Error(comm) if MPI cannot go on.
  bool progress();
  /// Whether all that was to come from `rank` has come; whether all that was queued is done.
  bool received(int rank) const;
  bool idle() const;

  /// No message goes on: what is on its way keeps `memory`, in which it lies.
  void abandon(std::shared_ptr<const void> memory);

 private:
  struct Peer;
  struct Requests;

  void begin(int rank, bool sends);

  std::vector<Peer> peers_;
  std::unique_ptr<Requests> requests_;
  size_t open_ = 0;  // messages that are not done
  std::vector<std::shared_ptr<const void>> abandoned_;
};

}  // namespace sherd
