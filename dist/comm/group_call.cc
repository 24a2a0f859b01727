#include "dist/comm/group_call.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/progress.h"

namespace sherd {

namespace {

constexpr size_t kPage = 4096;

/// Of the rank that is hardest to reach.
Transport::Reach farthest(const Transport& transport, int ranks) {
  auto reach = Transport::Reach::here;
  for (int r = 0; r < ranks; ++r) reach = std::max(reach, transport.reach(r));
  return reach;
}

}  // namespace

std::byte* Scratch::room(int rank, int ranks, size_t bytes, const std::byte* from) {
  const size_t stride = (bytes + 2 * kPage - 1) / kPage * kPage;
  if (memory_.empty()) memory_.resize(stride * static_cast<size_t>(ranks) + kPage);
  const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
  const auto page = (begin + kPage - 1) / kPage * kPage + stride * static_cast<size_t>(rank);
  // The kernel copies by `rep movsb`, which takes four times as long on an AMD Zen 3 where the
  // target begins up to 63 bytes behind the source within a page.
  const auto far = (reinterpret_cast<uintptr_t>(from) + kPage / 2) % kPage / 64 * 64;
  return reinterpret_cast<std::byte*>(page + far);
}

GroupState::GroupState(GroupParts p, std::unique_ptr<Transport> t, int r, std::vector<int> all)
    : parts(std::move(p)),
      transport(std::move(t)),
      rank(r),
      ranks(std::move(all)),
      in_place(farthest(*transport, size()) == Transport::Reach::here),
      one_sided(farthest(*transport, size()) != Transport::Reach::away) {
  parts.stream = nullptr;
}

GroupCall::GroupCall(GroupState& state, GroupOp op, CallTag tag)
    : state_(state), op_(op), tag_(std::move(tag)), begin_s_(steady_seconds()) {}

void GroupCall::meet(Addresses mine, const CallFacts& facts) {
  state_.mine = std::move(mine);
  CallEntry entry;
  entry.op = op_;
  entry.dtype = static_cast<uint32_t>(facts.dtype);
  entry.items = static_cast<uint32_t>(state_.mine.size());
  entry.elements = facts.elements;
  entry.details = facts.details;
  tag_.unit.copy(entry.unit, sizeof entry.unit - 1);
  state_.transport->meet(entry, state_.mine, state_.theirs);
  start_transfer();
  theirs_ = &state_.theirs;
}

void GroupCall::know(const std::vector<Addresses>& theirs) {
  start_transfer();
  theirs_ = &theirs;
}

void GroupCall::start_transfer() {
  if (transfer_s_ == 0) transfer_s_ = steady_seconds();
}

void GroupCall::offer(int r, std::span<const PeerMemory::Piece> pieces) {
  if (state_.transport->reach(r) == Transport::Reach::away) state_.transport->offer(r, pieces);
}

void GroupCall::read(int r, std::span<const PeerMemory::Piece> pieces) {
  if (r != state_.rank) return state_.transport->fetch(r, pieces);
  // Of processes, only a rank's own addresses are comparable.
  for (const auto& piece : pieces)
    if (piece.from != piece.to && piece.bytes > 0) std::memcpy(piece.to, piece.from, piece.bytes);
}

void GroupCall::copy(int r, std::span<const PeerMemory::Piece> pieces) {
  read(r, pieces);
  if (r == state_.rank) return;
  for (const auto& piece : pieces) received_ += static_cast<int64_t>(piece.bytes);
}

void GroupCall::gather(const std::vector<GatheredItem>& items, const std::vector<char>& wanted) {
  const auto list = [&](int r) {
    pieces_.clear();
    for (size_t i = 0; i < items.size(); ++i) {
      if (!wanted.empty() && wanted[i] == 0) continue;
      const auto& [cut, whole, element] = items[i];
      const int64_t row = cut.size(r) * cut.inner * element;
      for (int64_t o = 0; o < cut.outer && row > 0; ++o)
        pieces_.push_back({address(r, i) + o * row,
                           whole + (o * cut.dim() + cut.begin(r)) * cut.inner * element,
                           static_cast<size_t>(row)});
    }
  };
  if (!state_.one_sided) {
    list(state_.rank);
    for (int r = 0; r < state_.size(); ++r) offer(r, pieces_);
  }
  for (int k = 1; k <= state_.size(); ++k) {
    // Each rank begins with the one after it, so that not all read the same one at once.
    const int r = (state_.rank + k) % state_.size();
    list(r);
    copy(r, pieces_);
  }
  wait_fetched();
}

std::vector<char> GroupCall::sum(const std::vector<SummedItem>& items, const CallFacts& facts) {
  pack(items, state_.parts.runtime->isa());
  Addresses mine;
  for (const auto& item : items) mine.push_back(item.summands);
  meet(std::move(mine), facts);
  std::vector<char> found(items.size());
  for (size_t i = 0; i < items.size(); ++i)
    found[i] = std::any_of(theirs_->begin(), theirs_->end(),
                           [&](const Addresses& list) { return list[i] != nullptr; });
  if (!state_.one_sided) offer_summands(items, found);
  const size_t room = state_.transport->room_bytes();
  // Where all is read in place, there need be no rooms.
  const auto ranges = ranges_of(items, found, state_.rank, state_.in_place ? 0 : room);
  for (size_t first = 0; first < ranges.size();) {
    const size_t last = batch_end(items, ranges, first, room);
    sum_batch(items, std::span(ranges).subspan(first, last - first));
    first = last;
  }
  leave();
  return found;
}

void GroupCall::offer_summands(const std::vector<SummedItem>& items,
                               const std::vector<char>& found) {
  const size_t room = state_.transport->room_bytes();
  for (int r = 0; r < state_.size(); ++r) {
    if (state_.transport->reach(r) != Transport::Reach::away) continue;
    const auto ranges = ranges_of(items, found, r, room);
    for (size_t first = 0; first < ranges.size();) {
      const size_t last = batch_end(items, ranges, first, room);
      pieces_.clear();
      for (; first < last; ++first) {
        const SumRange& range = ranges[first];
        const std::byte* const mine = address(state_.rank, range.item);
        if (mine == nullptr) continue;
        const size_t element = size_of(items[range.item].wire);
        pieces_.push_back(
            {mine + static_cast<size_t>(range.begin) * element, nullptr, range.bytes(items)});
      }
      offer(r, pieces_);
    }
  }
}

void GroupCall::sum_batch(const std::vector<SummedItem>& items, std::span<const SumRange> batch) {
  const auto N = static_cast<size_t>(state_.size());
  in_.assign(batch.size() * N, nullptr);
  for (int r = 0; r < state_.size(); ++r) {
    const bool here = state_.transport->reach(r) == Transport::Reach::here;
    pieces_.clear();
    std::byte* to = nullptr;
    for (size_t k = 0; k < batch.size(); ++k) {
      const std::byte* from = address(r, batch[k].item);
      if (from == nullptr) continue;
      const size_t bytes = batch[k].bytes(items);
      from += static_cast<size_t>(batch[k].begin) * size_of(items[batch[k].item].wire);
      if (!here) {
        if (to == nullptr)
          to = state_.scratch.room(r, state_.size(), state_.transport->room_bytes(), from);
        pieces_.push_back({from, to, bytes});
        from = to;
        to += aligned(bytes);
      } else if (r != state_.rank) {
        received_ += static_cast<int64_t>(bytes);
      }
      in_[k * N + static_cast<size_t>(r)] = from;
    }
    if (!pieces_.empty()) copy(r, pieces_);
  }
  wait_fetched();
  for (size_t k = 0; k < batch.size(); ++k)
    sum_range(items, batch[k], std::span(in_).subspan(k * N, N), state_.parts.runtime->isa(),
              sums_);
}

void GroupCall::finish() const {
  if (state_.parts.link && op_ != kExchange) {
    const Link& link = *state_.parts.link;
    const double seconds =
        link.latency_us * 1e-6 + static_cast<double>(received_) * 8e-9 / link.gbps;
    const double left = transfer_s_ + seconds - steady_seconds();
    if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
  }
  {
    const std::lock_guard lock(state_.mutex);
    state_.received[static_cast<size_t>(tag_.traffic)] += received_;
  }
  const std::lock_guard lock(state_.observer_mutex);
  if (state_.observe)
    state_.observe({op_name(op_), tag_.unit, received_, begin_s_, steady_seconds()});
}

}  // namespace sherd
