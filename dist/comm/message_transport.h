// MessageTransport: a group whose ranks are on several hosts. Those of one host meet on a board and
// read each other's memory, as ever; to and from the others go messages.
// Invariant: a wait sleeps most of the time, and ends with an abort, a lost rank or a timeout.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dist/comm/board_transport.h"
#include "dist/comm/mpi_messages.h"

namespace sherd {

class MessageTransport final : public Transport {
 public:
  /// `ranks`: of the members in the world, this one being number `me`. `near` carries those of this
  /// host, which are the members `near_members`, rising.
  MessageTransport(Waiting waiting, std::unique_ptr<BoardTransport> near,
                   const std::vector<int>& near_members, std::shared_ptr<MpiMessages> messages,
                   std::vector<int> ranks, int me);

  Reach reach(int rank) const override;
  void meet(CallEntry entry, const Addresses& mine, std::vector<Addresses>& theirs) override;
  void offer(int rank, std::span<const PeerMemory::Piece> pieces) override;
  void fetch(int rank, std::span<const PeerMemory::Piece> pieces) override;
  void wait_fetched() override;
  void leave() override;
  void give_up(std::shared_ptr<const void> memory) override;
  size_t room_bytes() const override;

 private:
  int size() const { return static_cast<int>(ranks_.size()); }
  int world_rank(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  /// Its number among those of this host, or -1.
  int near(int rank) const { return near_[static_cast<size_t>(rank)]; }
  bool all_received() const;
  const CallEntry& said_by(int rank) const;

  template <class Done>
  void wait_for(const Done& done, const char* until);
  std::string trouble(double waited_s, const char* until) const;
  std::string where_all_are(const char* until) const;

  const Waiting waiting_;
  const std::unique_ptr<BoardTransport> board_;
  const std::shared_ptr<MpiMessages> messages_;
  const std::vector<int> ranks_;
  const int me_;
  std::vector<int> near_;
  const uint64_t group_;  // a hash of its ranks
  const bool spins_;      // before it sleeps: each rank of this host may have a core
  uint32_t calls_ = 0;
  CallEntry entry_;
  std::vector<CallEntry> said_;
  std::vector<Addresses> near_addresses_;
};

}  // namespace sherd
