// Board: where the ranks of a group meet. Each rank has a slot in which it says what it calls; a
// rendezvous ends when all have said the same. Plain words and futexes in memory that all ranks
// see, be they threads or processes, so one implementation serves both.
// Invariants: waits sleep; whoever waits learns of an abort within kSliceMs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "dist/comm/call_entry.h"

namespace sherd {

/// What one rank says at a rendezvous.
struct BoardEntry : CallEntry {
  const void* addresses = nullptr;  ///< of the caller's tensors; in the rank's own memory
};

/// Lies in memory shared by `ranks` ranks, made by create(), used through a BoardUser each.
class Board {
 public:
  static size_t bytes(int ranks) {
    return sizeof(Board) + sizeof(Slot) * static_cast<size_t>(ranks);
  }
  /// In `memory` of bytes(ranks), 64-byte aligned.
  static Board* create(void* memory, int ranks);

  int ranks() const { return ranks_; }

  /// Thread-safe; the first cause is kept, cut to what fits.
  void abort(const std::string& cause);
  bool aborted() const { return aborted_.load(std::memory_order_seq_cst) != 0; }
  std::string cause() const;
  /// Error(comm) with the cause.
  void throw_if_aborted() const;

  /// `rank` makes no more calls: who waits for it need not wait longer.
  void set_ended(int rank);
  bool ended(int rank) { return slot(rank).ended.load() != 0; }

 private:
  friend class BoardUser;
  static constexpr uint32_t kAbortWriting = 1;
  static constexpr uint32_t kAbortWritten = 2;
  static constexpr int kMaxCause = 2000;

  struct alignas(64) Slot {
    std::atomic<uint32_t> arrived{0};  ///< rendezvous begun: two for each call
    std::atomic<uint32_t> reading{0};  ///< may be reading the others' memory
    std::atomic<uint32_t> ended{0};
    BoardEntry entry;  ///< of the call in progress
  };

  explicit Board(int ranks) : ranks_(ranks) {}
  Slot& slot(int rank) { return std::launder(reinterpret_cast<Slot*>(this + 1))[rank]; }
  void wake_all();

  const int ranks_;
  std::atomic<uint32_t> aborted_{0};
  alignas(64) std::atomic<uint32_t> changes_{0};  ///< the futex: rises with each arrival
  std::atomic<uint32_t> sleepers_{0};
  char cause_[kMaxCause] = {};
};

/// One rank's view of a board; used by one thread at a time.
class BoardUser {
 public:
  struct Options {
    double timeout_s = 300;
    /// Of the world: an abort there ends waits here, too. Not null.
    Board* world = nullptr;
    /// The members' ranks in the world, for texts.
    std::vector<int> ranks;
    /// Asked now and then while waiting: what happened to a rank, or "". May be empty.
    std::function<std::string()> lost_rank;
  };
  BoardUser(Board* board, int rank, Options options);

  /// Says `entry` (its sequence is filled in) and waits until all ranks have said theirs.
  /// Throws Error(comm) after an abort, a timeout, or where a rank says something else; all ranks
  /// do then.
  void meet(BoardEntry entry);
  /// After meet(): what `rank` said. Valid until leave().
  const BoardEntry& said_by(int rank) const { return board_->slot(rank).entry; }
  /// Waits until all ranks have come here: their memory is no longer read.
  void leave();
  /// After an abort: this rank reads nothing more; waits until the others do not, either, so that
  /// what this rank showed them may go. Peers that were killed are not waited for long.
  void give_up();

 private:
  void arrive();
  bool all_here() const;
  void wait_for_all(const char* until);
  std::string trouble(double waited_s, const char* until) const;
  std::string where_all_are() const;
  bool here(int rank) const;
  int world_rank(int rank) const { return options_.ranks[static_cast<size_t>(rank)]; }

  Board* const board_;
  const int rank_;
  const Options options_;
  const bool spins_;  // before it sleeps: each rank may have a core
  uint32_t calls_ = 0;
  uint32_t arrivals_ = 0;
};

}  // namespace sherd
