// BoardTransport: ranks on one host, which meet on a board and read each other's memory. Serves
// threads and processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/comm/board.h"
#include "dist/comm/transport.h"

namespace sherd {

/// What the groups of a rank wait by.
struct Waiting {
  /// Of the world: an abort there ends all waits.
  std::shared_ptr<Board> world;
  double timeout_s = 300;
  /// Asked now and then: what happened to a rank, or "". May be empty.
  std::function<std::string()> lost_rank;
};

class BoardTransport final : public Transport {
 public:
  /// `ranks`: of the members in the world; this one is number `me` of them. `memory` reads by ranks
  /// of the world.
  BoardTransport(const Waiting& waiting, std::shared_ptr<Board> board,
                 std::shared_ptr<const PeerMemory> memory, std::vector<int> ranks, int me);

  Reach reach(int rank) const override;
  void meet(CallEntry entry, const Addresses& mine, std::vector<Addresses>& theirs) override;
  void offer(int rank, std::span<const PeerMemory::Piece> pieces) override;
  void fetch(int rank, std::span<const PeerMemory::Piece> pieces) override;
  void wait_fetched() override {}
  void leave() override { user_.leave(); }
  void give_up(std::shared_ptr<const void> memory) override;
  size_t room_bytes() const override;

  /// After meet(): what a member said. Valid until leave().
  const CallEntry& said_by(int rank) const { return user_.said_by(rank); }

 private:
  const std::shared_ptr<Board> board_, world_;
  const std::shared_ptr<const PeerMemory> memory_;
  const std::vector<int> ranks_;
  const int me_;
  BoardUser user_;
};

}  // namespace sherd
