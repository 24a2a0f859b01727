#include "dist/comm/board_transport.h"

#include <utility>

namespace sherd {

namespace {

// What is read of the other ranks, all together, before it is summed, where memory is not shared.
constexpr size_t kScratchBytes = 4 << 20;
// Of one rank: few calls, and what was read is still in the cache when it is summed.
constexpr size_t kMostRoomBytes = 128 << 10;

}  // namespace

BoardTransport::BoardTransport(const Waiting& waiting, std::shared_ptr<Board> board,
                               std::shared_ptr<const PeerMemory> memory, std::vector<int> ranks,
                               int me)
    : board_(std::move(board)),
      world_(waiting.world),
      memory_(std::move(memory)),
      ranks_(std::move(ranks)),
      me_(me),
      user_(board_.get(), me,
            {.timeout_s = waiting.timeout_s,
             .world = world_.get(),
             .ranks = ranks_,
             .lost_rank = waiting.lost_rank}) {}

Transport::Reach BoardTransport::reach(int rank) const {
  return rank == me_ || memory_->is_shared() ? Reach::here : Reach::host;
}

void BoardTransport::meet(CallEntry entry, const Addresses& mine, std::vector<Addresses>& theirs) {
  BoardEntry shown{entry, mine.data()};
  user_.meet(shown);
  theirs.assign(ranks_.size(), mine);
  for (int r = 0; r < board_->ranks(); ++r) {
    if (mine.empty() || r == me_) continue;
    const PeerMemory::Piece list{user_.said_by(r).addresses, theirs[static_cast<size_t>(r)].data(),
                                 mine.size() * sizeof mine[0]};
    fetch(r, {&list, 1});
  }
}

void BoardTransport::offer(int /*rank*/, std::span<const PeerMemory::Piece> /*pieces*/) {}

void BoardTransport::fetch(int rank, std::span<const PeerMemory::Piece> pieces) {
  memory_->read(ranks_[static_cast<size_t>(rank)], pieces);
}

void BoardTransport::give_up(std::shared_ptr<const void> /*memory*/) {
  // A process that reads what is gone gets an error, and it has one already.
  if (memory_->is_shared()) user_.give_up();
}

size_t BoardTransport::room_bytes() const {
  return std::min(kMostRoomBytes, kScratchBytes / ranks_.size()) / 64 * 64;
}

}  // namespace sherd
