#include "dist/comm/local_call.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/progress.h"
#include "dist/comm/tree_sum_kernels.h"

namespace sherd {

namespace {

// What is read of the other ranks, all together, before it is summed, where memory is not shared.
constexpr size_t kScratchBytes = 4 << 20;
// Of one rank: few calls, and what was read is still in the cache when it is summed.
constexpr size_t kMostRoomBytes = 128 << 10;
constexpr size_t kPage = 4096;
// Sums that are made before they are rounded to halves.
constexpr int64_t kPackElements = 32 << 10;

/// Where a piece begins in a room, so that kernels find it aligned.
size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Nothing where what travels is no half.
template <class Body>
void on_half(DType wire, Body&& body) {
  if (size_of(wire) == 2) on_dtype<bf16, f16>(wire, "a reduction in halves", body);
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

LocalState::LocalState(LocalCommParts p, std::shared_ptr<Board> b, int r, std::vector<int> all)
    : parts(std::move(p)),
      board(std::move(b)),
      rank(r),
      ranks(std::move(all)),
      user(board.get(), rank,
           {.timeout_s = parts.timeout_s,
            .world = parts.world.get(),
            .ranks = ranks,
            .lost_rank = parts.lost_rank}) {
  parts.stream = nullptr;
}

LocalCall::LocalCall(LocalState& state, LocalOp op, CallTag tag)
    : state_(state), op_(op), tag_(std::move(tag)), begin_s_(steady_seconds()) {}

void LocalCall::meet(Addresses mine, const CallFacts& facts) {
  mine_ = std::move(mine);
  BoardEntry entry;
  entry.op = op_;
  entry.dtype = static_cast<uint32_t>(facts.dtype);
  entry.items = static_cast<uint32_t>(mine_.size());
  entry.elements = facts.elements;
  entry.details = facts.details;
  entry.addresses = mine_.data();
  tag_.unit.copy(entry.unit, sizeof entry.unit - 1);
  state_.user.meet(entry);
  start_transfer();
  listed_.assign(static_cast<size_t>(state_.size()), mine_);
  for (int r = 0; r < state_.size(); ++r) {
    if (mine_.empty() || r == state_.rank) continue;
    const PeerMemory::Piece list{state_.user.said_by(r).addresses,
                                 listed_[static_cast<size_t>(r)].data(),
                                 mine_.size() * sizeof mine_[0]};
    read(r, {&list, 1});
  }
  theirs_ = &listed_;
}

void LocalCall::know(const std::vector<Addresses>& theirs) {
  start_transfer();
  theirs_ = &theirs;
}

void LocalCall::start_transfer() {
  if (transfer_s_ == 0) transfer_s_ = steady_seconds();
}

bool LocalCall::anyone_has(size_t i) const {
  return std::any_of(theirs_->begin(), theirs_->end(),
                     [&](const Addresses& list) { return list[i] != nullptr; });
}

void LocalCall::read(int r, std::span<const PeerMemory::Piece> pieces) const {
  if (r != state_.rank) return state_.parts.memory->read(state_.world_rank(r), pieces);
  // Of processes, only a rank's own addresses are comparable.
  for (const auto& piece : pieces)
    if (piece.from != piece.to && piece.bytes > 0) std::memcpy(piece.to, piece.from, piece.bytes);
}

void LocalCall::copy(int r, std::span<const PeerMemory::Piece> pieces) {
  read(r, pieces);
  if (r == state_.rank) return;
  for (const auto& piece : pieces) received_ += static_cast<int64_t>(piece.bytes);
}

void LocalCall::gather(const std::vector<GatheredItem>& items, const std::vector<char>& wanted) {
  std::vector<PeerMemory::Piece> pieces;
  for (int k = 1; k <= state_.size(); ++k) {
    // Each rank begins with the one after it, so that not all read the same one at once.
    const int r = (state_.rank + k) % state_.size();
    pieces.clear();
    for (size_t i = 0; i < items.size(); ++i) {
      if (!wanted.empty() && wanted[i] == 0) continue;
      const auto& [cut, whole, element] = items[i];
      const int64_t row = cut.size(r) * cut.inner * element;
      for (int64_t o = 0; o < cut.outer && row > 0; ++o)
        pieces.push_back({address(r, i) + o * row,
                          whole + (o * cut.dim() + cut.begin(r)) * cut.inner * element,
                          static_cast<size_t>(row)});
    }
    copy(r, pieces);
  }
}

std::vector<char> LocalCall::sum(const std::vector<SummedItem>& items, const CallFacts& facts,
                                 bool accumulate) {
  const Isa isa = state_.parts.runtime->isa();
  Addresses mine;
  for (const auto& item : items) {
    mine.push_back(item.summands);
    if (item.summands == nullptr) continue;
    on_half(item.wire, [&](auto w) {
      using W = typename decltype(w)::type;
      run_at(isa, kernels::PackInPlace<W>{const_cast<std::byte*>(item.summands)}, 0,
             item.cut.numel());
    });
  }
  meet(std::move(mine), facts);
  std::vector<char> found;
  std::vector<Range> ranges;
  for (size_t i = 0; i < items.size(); ++i) {
    found.push_back(anyone_has(i) ? 1 : 0);
    if (found[i] != 0) add_ranges(i, items[i], ranges);
  }
  sum_ranges(items, ranges, accumulate);
  leave();
  return found;
}

size_t LocalCall::room_bytes() const {
  return std::min(kMostRoomBytes, kScratchBytes / static_cast<size_t>(state_.size())) / 64 * 64;
}

void LocalCall::add_ranges(size_t i, const SummedItem& item, std::vector<Range>& ranges) const {
  const Cut& cut = item.cut;
  const int64_t row = cut.size(state_.rank) * cut.inner;
  const auto size = static_cast<int64_t>(size_of(item.wire));
  int64_t most = std::max<int64_t>(row, 1);
  if (!state_.parts.memory->is_shared())
    most = std::min(most, static_cast<int64_t>(room_bytes()) / size);
  if (item.halves != nullptr) most = std::min(most, kPackElements);
  // Of what a sum takes where it goes.
  const int64_t out_size = size == 2 && item.halves == nullptr ? 4 : size;
  for (int64_t o = 0; o < cut.outer; ++o)
    for (int64_t at = 0; at < row; at += most)
      ranges.push_back({i, (o * cut.dim() + cut.begin(state_.rank)) * cut.inner + at,
                        std::min(most, row - at), item.sum + (o * row + at) * out_size});
}

void LocalCall::sum_ranges(const std::vector<SummedItem>& items, const std::vector<Range>& ranges,
                           bool accumulate) {
  const auto N = static_cast<size_t>(state_.size());
  const bool shared = state_.parts.memory->is_shared();
  const auto bytes_of = [&](const Range& range) {
    return static_cast<size_t>(range.n) * size_of(items[range.item].wire);
  };
  std::vector<const std::byte*> in;  // [range][rank]
  std::vector<PeerMemory::Piece> pieces;
  for (size_t first = 0; first < ranges.size();) {
    // As many as there is room for are read together.
    size_t last = first;
    for (size_t bytes = 0; last < ranges.size(); ++last) {
      bytes += aligned(bytes_of(ranges[last]));
      if (last > first && bytes > room_bytes()) break;
    }
    in.assign((last - first) * N, nullptr);
    for (size_t r = 0; r < N; ++r) {
      const bool reads = !shared && static_cast<int>(r) != state_.rank;
      pieces.clear();
      std::byte* to = nullptr;
      for (size_t k = first; k < last; ++k) {
        const std::byte* from = address(static_cast<int>(r), ranges[k].item);
        if (from == nullptr) continue;
        const size_t bytes = bytes_of(ranges[k]);
        from += static_cast<size_t>(ranges[k].begin) * size_of(items[ranges[k].item].wire);
        if (reads) {
          if (to == nullptr)
            to = state_.scratch.room(static_cast<int>(r), state_.size(), room_bytes(), from);
          pieces.push_back({from, to, bytes});
          from = to;
          to += aligned(bytes);
        } else if (static_cast<int>(r) != state_.rank) {
          received_ += static_cast<int64_t>(bytes);
        }
        in[(k - first) * N + r] = from;
      }
      if (!pieces.empty()) copy(static_cast<int>(r), pieces);
    }
    for (size_t k = first; k < last; ++k)
      sum_range(items[ranges[k].item], ranges[k], &in[(k - first) * N], accumulate);
    first = last;
  }
}

void LocalCall::sum_range(const SummedItem& item, const Range& range, const std::byte* const* in,
                          bool accumulate) {
  const Isa isa = state_.parts.runtime->isa();
  const auto tree = [&]<class W>(Accumulate<W>* out, bool add) {
    run_at(isa, kernels::TreeSum<W>{reinterpret_cast<const W* const*>(in), state_.size(), out, add},
           0, range.n);
  };
  if (item.halves == nullptr)
    return on_dtype<float, double, bf16, f16>(item.wire, "a reduction", [&](auto w) {
      using W = typename decltype(w)::type;
      tree.template operator()<W>(reinterpret_cast<Accumulate<W>*>(range.out), accumulate);
    });
  on_half(item.wire, [&](auto w) {
    using W = typename decltype(w)::type;
    sums_.resize(
        static_cast<size_t>(std::max<int64_t>(range.n, static_cast<int64_t>(sums_.size()))));
    tree.template operator()<W>(sums_.data(), false);
    run_at(isa, kernels::PackInPlace<W>{sums_.data()}, 0, range.n);
    std::memcpy(range.out, sums_.data(), static_cast<size_t>(range.n) * sizeof(W));
  });
}

void LocalCall::widen(const std::vector<SummedItem>& items, const std::vector<char>& found) const {
  for (size_t i = 0; i < items.size(); ++i) {
    const SummedItem& item = items[i];
    if (found[i] == 0 || item.halves == nullptr) continue;
    on_half(item.wire, [&](auto w) {
      using W = typename decltype(w)::type;
      run_at(state_.parts.runtime->isa(), kernels::Widen<W>{item.halves, item.widened}, 0,
             item.num_widened);
    });
  }
}

void LocalCall::finish() const {
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
