#include "dist/comm/message_transport.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/machine.h"
#include "base/progress.h"

namespace sherd {

namespace {

// What is received of all ranks together before it is summed: staging stays small, and a
// handshake is little beside it.
constexpr size_t kScratchBytes = 4 << 20;
// A message that is as good as there is taken without a sleep.
constexpr double kSpin_s = 50e-6;
// How often a waiting rank looks whether others are still there.
constexpr double kLook_s = 0.05;
// What a call waits for.
constexpr const char* kBegin = "to begin";
constexpr const char* kEnd = "to end";

/// Sleeps for a tenth of what was waited in vain, so that a wait is at most so much longer; a few
/// milliseconds at most, of which looking for messages takes 1 %.
void pause(double in_vain_s, bool spins) {
  if (spins && in_vain_s < kSpin_s) return _mm_pause();
  std::this_thread::sleep_for(
      std::chrono::duration<double>(std::clamp(in_vain_s / 10, 10e-6, 5e-3)));
}

uint64_t hash_of(const std::vector<int>& ranks) {
  uint64_t hash = kHashOfNothing;
  for (const int r : ranks) hash = hash_on(hash, r);
  return hash;
}

std::vector<int> places_of(const std::vector<int>& near_members, size_t ranks) {
  std::vector<int> near(ranks, -1);
  for (size_t i = 0; i < near_members.size(); ++i)
    near[static_cast<size_t>(near_members[i])] = static_cast<int>(i);
  return near;
}

template <class T>
PeerMemory::Piece bytes_at(T* values, size_t count = 1) {
  return {values, const_cast<std::remove_const_t<T>*>(values), count * sizeof *values};
}

}  // namespace

MessageTransport::MessageTransport(Waiting waiting, std::unique_ptr<BoardTransport> near,
                                   const std::vector<int>& near_members,
                                   std::shared_ptr<MpiMessages> messages, std::vector<int> ranks,
                                   int me)
    : waiting_(std::move(waiting)),
      board_(std::move(near)),
      messages_(std::move(messages)),
      ranks_(std::move(ranks)),
      me_(me),
      near_(places_of(near_members, ranks_.size())),
      group_(hash_of(ranks_)),
      spins_(static_cast<int>(near_members.size()) <= usable_cores()),
      said_(ranks_.size()) {}

Transport::Reach MessageTransport::reach(int rank) const {
  return near(rank) < 0 ? Reach::away : board_->reach(near(rank));
}

const CallEntry& MessageTransport::said_by(int rank) const {
  return near(rank) < 0 ? said_[static_cast<size_t>(rank)] : board_->said_by(near(rank));
}

void MessageTransport::meet(CallEntry entry, const Addresses& mine,
                            std::vector<Addresses>& theirs) {
  // The ranks of this host compare it on their board; which group it is for, the others compare.
  entry.details ^= group_;
  entry_ = entry;
  entry_.sequence = ++calls_;
  theirs.resize(ranks_.size());
  for (int r = 0; r < size(); ++r) {
    if (near(r) >= 0) continue;
    const PeerMemory::Piece own[] = {bytes_at(&entry_), bytes_at(mine.data(), mine.size())};
    messages_->send(world_rank(r), {&own[0], 1});
    messages_->send(world_rank(r), {&own[1], 1});
    const PeerMemory::Piece said = bytes_at(&said_[static_cast<size_t>(r)]);
    messages_->receive(world_rank(r), {&said, 1});
  }
  board_->meet(entry, mine, near_addresses_);
  wait_for([&] { return all_received(); }, kBegin);
  for (int r = 1; r < size(); ++r) {
    if (said_by(r).agrees_with(said_by(0))) continue;
    waiting_.world->abort(difference(world_rank(0), said_by(0), world_rank(r), said_by(r)));
    waiting_.world->throw_if_aborted();
  }
  for (int r = 0; r < size(); ++r) {
    Addresses& list = theirs[static_cast<size_t>(r)];
    if (near(r) >= 0) {
      list = near_addresses_[static_cast<size_t>(near(r))];
    } else {
      list.resize(mine.size());
      const PeerMemory::Piece words = bytes_at(list.data(), list.size());
      messages_->receive(world_rank(r), {&words, 1});
    }
  }
  wait_for([&] { return all_received(); }, kEnd);
}

void MessageTransport::offer(int rank, std::span<const PeerMemory::Piece> pieces) {
  messages_->send(world_rank(rank), pieces);
}

void MessageTransport::fetch(int rank, std::span<const PeerMemory::Piece> pieces) {
  if (near(rank) >= 0) return board_->fetch(near(rank), pieces);
  messages_->receive(world_rank(rank), pieces);
}

void MessageTransport::wait_fetched() {
  wait_for([&] { return all_received(); }, kEnd);
}

void MessageTransport::leave() {
  // The messages first: once they are done, those away need nothing of this rank, so it may sleep
  // until those of its host are done.
  wait_for([&] { return messages_->idle(); }, kEnd);
  board_->leave();
}

void MessageTransport::give_up(std::shared_ptr<const void> memory) {
  messages_->abandon(memory);
  board_->give_up(std::move(memory));
}

size_t MessageTransport::room_bytes() const { return kScratchBytes / ranks_.size() / 64 * 64; }

bool MessageTransport::all_received() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [&](int r) { return messages_->received(r); });
}

template <class Done>
void MessageTransport::wait_for(const Done& done, const char* until) {
  const double begin_s = steady_seconds();
  double last_s = begin_s, looked_s = begin_s;
  for (;;) {
    const bool any = messages_->progress();
    if (done()) return;
    waiting_.world->throw_if_aborted();
    const double now_s = steady_seconds();
    if (any) last_s = now_s;
    if (now_s - looked_s > kLook_s) {
      looked_s = now_s;
      const std::string cause = trouble(now_s - begin_s, until);
      if (!cause.empty()) {
        waiting_.world->abort(cause);
        waiting_.world->throw_if_aborted();
      }
    }
    pause(now_s - last_s, spins_);
  }
}

std::string MessageTransport::trouble(double waited_s, const char* until) const {
  if (waiting_.lost_rank) {
    const std::string lost = waiting_.lost_rank();
    if (!lost.empty()) return lost_text(lost, world_rank(me_), entry_, until);
  }
  // Later on, what a rank sent may be on its way when it has ended.
  for (const int r : ranks_)
    if (until == kBegin && waiting_.world->ended(r) && !messages_->received(r))
      return ended_text(r, world_rank(me_), entry_, until);
  if (waited_s > waiting_.timeout_s)
    return timeout_text(world_rank(me_), waiting_.timeout_s, until, where_all_are(until));
  return {};
}

std::string MessageTransport::where_all_are(const char* until) const {
  std::string text;
  for (int r = 0; r < size(); ++r) {
    if (r > 0) text += "; ";
    const bool here = near(r) >= 0 || messages_->received(world_rank(r));
    text += place_text(world_rank(r), here ? &said_by(r) : nullptr, until == kBegin, calls_ - 1);
  }
  return text;
}

}  // namespace sherd
