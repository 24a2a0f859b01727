#include "dist/comm/board.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/machine.h"
#include "base/progress.h"

namespace sherd {

namespace {

constexpr int64_t kSliceMs = 50;
// A peer that is as good as there is met without a trip to the kernel and back.
constexpr double kSpin_s = 50e-6;
// How long a rank that ends waits for others that may be reading its memory.
constexpr double kMostReading_s = 5;

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  const timespec slice{0, kSliceMs * 1000000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, seen, &slice, nullptr, 0);
}

}  // namespace

Board* Board::create(void* memory, int ranks) {
  auto* const board = new (memory) Board(ranks);
  for (int r = 0; r < ranks; ++r) new (reinterpret_cast<Slot*>(board + 1) + r) Slot;
  return board;
}

void Board::abort(const std::string& cause) {
  uint32_t none = 0;
  if (!aborted_.compare_exchange_strong(none, kAbortWriting)) return;
  std::strncpy(cause_, cause.c_str(), kMaxCause - 1);
  aborted_.store(kAbortWritten);
  wake_all();
}

std::string Board::cause() const {
  // Whoever is writing needs microseconds, unless it was killed.
  const double begin_s = steady_seconds();
  while (aborted_.load() == kAbortWriting && steady_seconds() - begin_s < 1) nap();
  return aborted_.load() == kAbortWritten ? cause_ : "a rank ended while it said why";
}

void Board::throw_if_aborted() const {
  if (aborted()) fail_as(ErrorKind::comm, "stopped:", cause());
}

void Board::set_ended(int rank) {
  slot(rank).ended.store(1);
  wake_all();
}

void Board::wake_all() {
  changes_.fetch_add(1);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&changes_), FUTEX_WAKE, INT32_MAX, nullptr,
          nullptr, 0);
}

BoardUser::BoardUser(Board* board, int rank, Options options)
    : board_(board),
      rank_(rank),
      options_(std::move(options)),
      spins_(board->ranks() <= usable_cores()) {}

void BoardUser::meet(BoardEntry entry) {
  // Before the look at the abort: give_up() of another rank sees this one's mark, or this rank sees
  // the abort.
  board_->slot(rank_).reading.store(1);
  options_.world->throw_if_aborted();
  entry.sequence = ++calls_;
  board_->slot(rank_).entry = entry;
  arrive();
  wait_for_all("to begin");
  for (int r = 1; r < board_->ranks(); ++r) {
    if (said_by(r).agrees_with(said_by(0))) continue;
    // Every rank comes to the same words.
    options_.world->abort(difference(world_rank(0), said_by(0), world_rank(r), said_by(r)));
    options_.world->throw_if_aborted();
  }
}

void BoardUser::leave() {
  board_->slot(rank_).reading.store(0);
  arrive();
  wait_for_all("to end");
}

void BoardUser::give_up() {
  board_->slot(rank_).reading.store(0);
  const double begin_s = steady_seconds();
  for (int r = 0; r < board_->ranks(); ++r)
    while (board_->slot(r).reading.load() != 0 && steady_seconds() - begin_s < kMostReading_s)
      nap();
}

void BoardUser::arrive() {
  board_->slot(rank_).arrived.store(++arrivals_, std::memory_order_release);
  // The last of these sees all arrivals: it is enough that it wakes those who sleep.
  board_->changes_.fetch_add(1);
  if (all_here() && board_->sleepers_.load() != 0) board_->wake_all();
}

bool BoardUser::here(int rank) const {
  // A rank may be ahead by one: then it has seen this one arrive.
  const uint32_t theirs = board_->slot(rank).arrived.load(std::memory_order_acquire);
  return static_cast<int32_t>(theirs - arrivals_) >= 0;
}

bool BoardUser::all_here() const {
  for (int r = 0; r < board_->ranks(); ++r)
    if (!here(r)) return false;
  return true;
}

void BoardUser::wait_for_all(const char* until) {
  const double begin_s = steady_seconds();
  do {
    if (all_here()) return;
    _mm_pause();
  } while (spins_ && steady_seconds() - begin_s < kSpin_s);
  for (;;) {
    // Sleepers is raised before changes is read, and arrive() does both the other way round: either
    // the arrival is seen here, or the sleeper is seen there.
    board_->sleepers_.fetch_add(1);
    const uint32_t seen = board_->changes_.load();
    if (!all_here() && !options_.world->aborted()) futex_wait(board_->changes_, seen);
    board_->sleepers_.fetch_sub(1);
    if (all_here()) return;
    options_.world->throw_if_aborted();
    const std::string cause = trouble(steady_seconds() - begin_s, until);
    if (cause.empty()) continue;
    options_.world->abort(cause);
    options_.world->throw_if_aborted();
  }
}

std::string BoardUser::trouble(double waited_s, const char* until) const {
  if (options_.lost_rank) {
    const std::string lost = options_.lost_rank();
    if (!lost.empty()) return lost_text(lost, world_rank(rank_), said_by(rank_), until);
  }
  for (int r = 0; r < board_->ranks(); ++r) {
    if (options_.world->ended(world_rank(r)) && !here(r))
      return ended_text(world_rank(r), world_rank(rank_), said_by(rank_), until);
  }
  if (waited_s > options_.timeout_s)
    return timeout_text(world_rank(rank_), options_.timeout_s, until, where_all_are());
  return {};
}

std::string BoardUser::where_all_are() const {
  // At the end of a call all have said the same; at its beginning a rank that is here stays here,
  // with what it said, until this one has seen the others.
  const bool begins = arrivals_ % 2 == 1;
  std::string text;
  for (int r = 0; r < board_->ranks(); ++r) {
    if (r > 0) text += "; ";
    text += place_text(world_rank(r), here(r) ? &said_by(begins ? r : rank_) : nullptr, begins,
                       board_->slot(r).arrived.load() / 2);
  }
  return text;
}

}  // namespace sherd
