#include "dist/comm/local_comm.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/progress.h"
#include "dist/comm/part.h"
#include "dist/comm/tree_sum_kernels.h"

namespace sherd {

namespace {

enum Op : uint32_t { kAllGather = 1, kReduceScatter, kAllReduce, kBroadcast, kAllToAll, kExchange };

// What is read of the other ranks, all together, before it is summed, where memory is not shared.
constexpr size_t kScratchBytes = 4 << 20;
// Of one rank: few calls, and what was read is still in the cache when it is summed.
constexpr size_t kMostChunkBytes = 128 << 10;
constexpr size_t kPage = 4096;
// Sums that are made before they are rounded to halves.
constexpr int64_t kPackElements = 32 << 10;

// The address of summands that are there but have no elements.
constexpr std::byte kNoBytes{};

const std::byte* summands(const std::byte* whole, bool absent) {
  if (absent) return nullptr;
  return whole != nullptr ? whole : &kNoBytes;
}

int64_t num_bytes(const Tensor& t) { return t.numel() * static_cast<int64_t>(size_of(t.dtype())); }

void check_cut(const Cut& cut, int size) {
  check(cut.starts.size() == static_cast<size_t>(size) + 1, "the cut is for",
        static_cast<int64_t>(cut.starts.size()) - 1, "ranks, the group has", size);
}

// A tensor is described only where it is wrong: there may be thousands in a call.

void check_whole(const CutTensor& item) {
  if (item.whole.is_contiguous() && item.whole.numel() == item.cut.numel()) return;
  fail("the whole of a collective is not contiguous or not what the cut says:",
       describe(item.whole), "for", item.cut.numel(), "elements");
}

void check_local(const CutTensor& item, int rank) {
  check(static_cast<bool>(item.local), "a collective wants this rank's part");
  if (item.local.is_contiguous() && item.local.numel() == item.cut.numel(rank)) return;
  fail("this rank's part in a collective is not contiguous or not what the cut says:",
       describe(item.local), "for", item.cut.numel(rank), "elements");
}

/// What travels for tensors of `dtype`.
DType wire_of(const Reduction& how, DType dtype) {
  check(dtype == DType::f32 || dtype == DType::f64, "gradients are reduced in f32 or f64, not",
        dtype);
  return dtype == DType::f64 ? DType::f64 : how.wire;
}

/// Nothing where what travels is no half.
template <class Body>
void on_half(DType wire, Body&& body) {
  if (size_of(wire) == 2) on_dtype<bf16, f16>(wire, "a reduction in halves", body);
}

/// Where another process's memory is read to, in a room for each rank.
class Scratch {
 public:
  /// Of at least `bytes` in the room of `rank`, to read `from` into.
  std::byte* room(int rank, int ranks, size_t bytes, const std::byte* from) {
    const size_t stride = (bytes + 2 * kPage - 1) / kPage * kPage;
    if (memory_.empty()) memory_.resize(stride * static_cast<size_t>(ranks) + kPage);
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
    const auto page = (begin + kPage - 1) / kPage * kPage + stride * static_cast<size_t>(rank);
    // The kernel copies by `rep movsb`, which takes four times as long on an AMD Zen 3 where the
    // target begins up to 63 bytes behind the source within a page.
    return reinterpret_cast<std::byte*>(page + (reinterpret_cast<uintptr_t>(from) + kPage / 2) %
                                                   kPage / 64 * 64);
  }

 private:
  std::vector<std::byte> memory_;
};

}  // namespace

/// What outlives a LocalComm as long as calls are in flight. Without the stream, whose thread must
/// not be the last to let go of it.
struct LocalComm::State {
  State(LocalCommParts p, std::shared_ptr<Board> b, int r, std::vector<int> all)
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

  int size() const { return static_cast<int>(ranks.size()); }
  int world_rank(int r) const { return ranks[static_cast<size_t>(r)]; }

  LocalCommParts parts;
  const std::shared_ptr<Board> board;
  const int rank;
  const std::vector<int> ranks;
  BoardUser user;   // of the call in progress
  Scratch scratch;  // likewise
  /// [id][rank]; grows on the rank's thread while the stream is idle, and entries stay where they
  /// are.
  std::deque<std::vector<Addresses>> resting;
  std::mutex mutex;
  TrafficBytes received{};
  std::mutex observer_mutex;
  std::function<void(const CommSpan&)> observe;
};

/// What all ranks must say alike.
struct LocalComm::What {
  int64_t elements = 0;
  DType dtype = DType::u8;
  uint64_t details = 14695981039346656037u;  // FNV-1a, a word at a time

  void add(int64_t word) { details = (details ^ static_cast<uint64_t>(word)) * 1099511628211u; }
  void add(DType t) {
    dtype = t;
    add(static_cast<int64_t>(t));
  }
  void add(const Cut& cut) {
    elements += cut.numel();
    add(cut.outer);
    add(cut.inner);
    for (const int64_t start : cut.starts) add(start);
  }
};

/// One tensor of a reduction, as the ranks sum it.
struct LocalComm::Summed {
  Cut cut;
  DType wire;
  const std::byte* summands = nullptr;  ///< this rank's; halves are made of them in place
  std::byte* sum = nullptr;             ///< where this rank's part of the sum goes
  /// Not null: sums stay halves until nobody reads them, and `num_widened` from here on then become
  /// floats in `widened`.
  std::byte* halves = nullptr;
  std::byte* widened = nullptr;
  int64_t num_widened = 0;
};

/// A call in progress, on one thread.
class LocalComm::Call {
 public:
  Call(State& state, uint32_t op, CallTag tag)
      : state_(state), op_(op), tag_(std::move(tag)), begin_s_(steady_seconds()) {}

  /// Says what this rank calls with, and waits for the others.
  void meet(Addresses mine, const What& what) {
    mine_ = std::move(mine);
    BoardEntry entry;
    entry.op = op_;
    entry.dtype = static_cast<uint32_t>(what.dtype);
    entry.items = static_cast<uint32_t>(mine_.size());
    entry.elements = what.elements;
    entry.details = what.details;
    entry.addresses = mine_.data();
    tag_.unit.copy(entry.unit, sizeof entry.unit - 1);
    state_.user.meet(entry);
    start_transfer();
    listed_.assign(static_cast<size_t>(state_.size()), mine_);
    if (!mine_.empty())
      for (int r = 0; r < state_.size(); ++r)
        read(r, state_.user.said_by(r).addresses, listed_[static_cast<size_t>(r)].data(),
             mine_.size() * sizeof mine_[0]);
    theirs_ = &listed_;
  }
  /// Instead of meet(): where the ranks' tensors are is known.
  void know(const std::vector<Addresses>& theirs) {
    start_transfer();
    theirs_ = &theirs;
  }
  void leave() { state_.user.leave(); }

  /// Of item i of rank r; null where that rank has none.
  const std::byte* address(int r, size_t i) const { return (*theirs_)[static_cast<size_t>(r)][i]; }
  bool anyone_has(size_t i) const {
    return std::any_of(theirs_->begin(), theirs_->end(),
                       [&](const Addresses& list) { return list[i] != nullptr; });
  }

  /// From rank r's memory, not counted.
  void read(int r, const void* from, void* to, size_t bytes) const {
    // Of processes, only a rank's own addresses are comparable.
    if (r != state_.rank)
      state_.parts.memory->read(state_.world_rank(r), from, to, bytes);
    else if (from != to)
      std::memcpy(to, from, bytes);
  }
  void copy(int r, const std::byte* from, std::byte* to, int64_t bytes) {
    if (bytes == 0) return;
    read(r, from, to, static_cast<size_t>(bytes));
    count(r, bytes);
  }

  /// Copies the ranks' parts of item i, each [outer, n_r, inner] in its memory, into `whole`.
  void gather(size_t i, const Cut& cut, std::byte* whole, int64_t element) {
    for (int k = 1; k <= state_.size(); ++k) {
      // Each rank begins with the one after it, so that not all read the same one at once.
      const int r = (state_.rank + k) % state_.size();
      const int64_t row = cut.size(r) * cut.inner * element;
      if (row == 0) continue;
      for (int64_t o = 0; o < cut.outer; ++o)
        copy(r, address(r, i) + o * row,
             whole + (o * cut.dim() + cut.begin(r)) * cut.inner * element, row);
    }
  }

  /// Sums this rank's part of every item, from meet() to leave(); whether any rank had summands.
  std::vector<char> sum_all(const std::vector<Summed>& todo, const What& what, bool accumulate) {
    Addresses mine;
    for (const auto& item : todo) {
      mine.push_back(item.summands);
      if (item.summands == nullptr) continue;
      on_half(item.wire, [&](auto w) {
        pack<typename decltype(w)::type>(const_cast<std::byte*>(item.summands), item.cut.numel());
      });
    }
    meet(std::move(mine), what);
    std::vector<char> found;
    for (size_t i = 0; i < todo.size(); ++i) {
      found.push_back(anyone_has(i) ? 1 : 0);
      if (found[i] != 0) sum_one(i, todo[i], accumulate);
    }
    leave();
    return found;
  }
  /// When nobody reads the sums any more.
  void widen_all(const std::vector<Summed>& todo, const std::vector<char>& found) const {
    for (size_t i = 0; i < todo.size(); ++i) {
      if (found[i] == 0 || todo[i].halves == nullptr) continue;
      on_half(todo[i].wire, [&](auto w) {
        using W = typename decltype(w)::type;
        run_at(isa(), kernels::Widen<W>{todo[i].halves, todo[i].widened}, 0, todo[i].num_widened);
      });
    }
  }

  void finish() const {
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

 private:
  void start_transfer() {
    if (transfer_s_ == 0) transfer_s_ = steady_seconds();
  }
  void count(int r, int64_t bytes) {
    if (r != state_.rank) received_ += bytes;
  }

  Isa isa() const { return state_.parts.runtime->isa(); }
  template <class W>
  void pack(void* floats, int64_t n) const {
    run_at(isa(), kernels::PackInPlace<W>{floats}, 0, n);
  }

  void sum_one(size_t i, const Summed& item, bool accumulate) {
    if (item.halves != nullptr)
      return on_half(item.wire, [&](auto w) {
        sum_packed<typename decltype(w)::type>(i, item.cut, item.sum);
      });
    on_dtype<float, double, bf16, f16>(item.wire, "a reduction", [&](auto w) {
      using W = typename decltype(w)::type;
      sum<W>(i, item.cut, reinterpret_cast<Accumulate<W>*>(item.sum), accumulate);
    });
  }
  /// out = the tree sum of this rank's part of item i; W is what the wholes hold.
  template <class W>
  void sum(size_t i, const Cut& cut, Accumulate<W>* out, bool accumulate) {
    const int64_t row = cut.size(state_.rank) * cut.inner;
    if (row == 0) return;
    for (int64_t o = 0; o < cut.outer; ++o)
      sum_range<W>(i, (o * cut.dim() + cut.begin(state_.rank)) * cut.inner, row, out + o * row,
                   accumulate);
  }
  /// The same for a cut of the first dim, as halves W, which the sums are rounded to anyway.
  template <class W>
  void sum_packed(size_t i, const Cut& cut, std::byte* out) {
    const int64_t n = cut.numel(state_.rank);
    std::vector<float> sums(static_cast<size_t>(std::min(n, kPackElements)));
    for (int64_t at = 0; at < n; at += kPackElements) {
      const int64_t m = std::min(kPackElements, n - at);
      sum_range<W>(i, cut.begin(state_.rank) * cut.inner + at, m, sums.data(), false);
      pack<W>(sums.data(), m);
      std::memcpy(out + at * 2, sums.data(), static_cast<size_t>(m) * 2);
    }
  }
  /// Elements [begin, begin + n) of item i.
  template <class W>
  void sum_range(size_t i, int64_t begin, int64_t n, Accumulate<W>* out, bool accumulate) {
    const auto N = static_cast<size_t>(state_.size());
    const bool shared = state_.parts.memory->is_shared();
    const size_t room = std::min(kMostChunkBytes, kScratchBytes / N) / 64 * 64;
    const int64_t chunk = shared ? n : static_cast<int64_t>(room / sizeof(W));
    std::vector<const W*> in(N);
    for (int64_t at = 0; at < n; at += chunk) {
      const int64_t m = std::min(chunk, n - at);
      const auto bytes = m * static_cast<int64_t>(sizeof(W));
      for (int r = 0; r < state_.size(); ++r) {
        const std::byte* from = address(r, i);
        if (from != nullptr) {
          from += (begin + at) * static_cast<int64_t>(sizeof(W));
          if (shared || r == state_.rank) {
            count(r, bytes);
          } else {
            std::byte* const to = state_.scratch.room(r, state_.size(), room, from);
            copy(r, from, to, bytes);
            from = to;
          }
        }
        in[static_cast<size_t>(r)] = reinterpret_cast<const W*>(from);
      }
      run_at(isa(), kernels::TreeSum<W>{in.data(), state_.size(), out + at, accumulate}, 0, m);
    }
  }

  State& state_;
  const uint32_t op_;
  const CallTag tag_;
  const double begin_s_;
  double transfer_s_ = 0;
  Addresses mine_;
  std::vector<Addresses> listed_;
  const std::vector<Addresses>* theirs_ = nullptr;
  int64_t received_ = 0;
};

LocalComm::LocalComm(LocalCommParts parts, std::shared_ptr<Board> board, int rank,
                     std::vector<int> ranks)
    : stream_(parts.stream),
      state_(std::make_shared<State>(std::move(parts), std::move(board), rank, std::move(ranks))) {}

LocalComm::~LocalComm() { set_observer(nullptr); }

int LocalComm::rank() const { return state_->rank; }

int LocalComm::size() const { return state_->size(); }

Work LocalComm::submit(uint32_t op, const CallTag& tag, std::vector<Tensor> buffers, Event after,
                       std::function<void(Call&)> body) {
  auto task = [state = state_, op, tag, body = std::move(body)] {
    const Context in(op_name(op), " of ", tag.unit);
    Call call(*state, op, tag);
    try {
      state->user.throw_if_aborted();
      body(call);
      call.finish();
    } catch (const std::exception& e) {
      // Peers may be waiting in this call; they end with the same cause. A cause that is there
      // already stays.
      state->parts.world->abort(cause_at(state->world_rank(state->rank), e.what()));
      if (state->parts.memory->is_shared()) state->user.give_up();
      throw;
    }
  };
  return {stream_->submit(std::move(task), {std::move(after)}, tag.where), std::move(buffers)};
}

Work LocalComm::all_gather(std::vector<CutTensor> items, const CallTag& tag, Event after,
                           Resting resting) {
  struct Item {
    Cut cut;
    std::byte* whole;
    int64_t element;
  };
  std::vector<Tensor> buffers;
  std::vector<Item> todo;
  Addresses mine;
  What what;
  for (auto& item : items) {
    check_cut(item.cut, size());
    check_whole(item);
    check_local(item, rank());
    check(item.whole.dtype() == item.local.dtype(),
          "all_gather wants one dtype:", item.whole.dtype(), "and", item.local.dtype());
    what.add(item.cut);
    what.add(item.whole.dtype());
    mine.push_back(bytes_of(item.local));
    todo.push_back({std::move(item.cut), bytes_of(item.whole),
                    static_cast<int64_t>(size_of(item.whole.dtype()))});
    buffers.push_back(std::move(item.whole));
    buffers.push_back(std::move(item.local));
  }
  const std::vector<Addresses>* known = nullptr;
  if (resting.id >= 0) {
    known = &state_->resting.at(static_cast<size_t>(resting.id));
    check((*known)[static_cast<size_t>(rank())] == mine,
          "all_gather of resting tensors is of others than those that rest");
  }
  return submit(kAllGather, tag, std::move(buffers), std::move(after),
                [todo = std::move(todo), mine = std::move(mine), what, known](Call& call) {
                  if (known != nullptr)
                    call.know(*known);
                  else
                    call.meet(mine, what);
                  for (size_t i = 0; i < todo.size(); ++i)
                    call.gather(i, todo[i].cut, todo[i].whole, todo[i].element);
                  if (known == nullptr) call.leave();
                });
}

Work LocalComm::reduce_scatter(std::vector<CutTensor> items, const Reduction& how,
                               const CallTag& tag, Event after,
                               std::shared_ptr<std::vector<char>> present) {
  std::vector<Tensor> buffers;
  std::vector<Summed> todo;
  What what;
  what.add(how.wire);
  what.add(how.accumulate ? 1 : 0);
  for (const auto& item : items) {
    check_cut(item.cut, size());
    check_local(item, rank());
    const DType dtype = item.local.dtype();
    what.add(item.cut);
    what.add(dtype);
    std::byte* const result = bytes_of(item.local);
    Summed next{.cut = item.cut, .wire = wire_of(how, dtype), .sum = result};
    buffers.push_back(item.local);
    std::byte* whole = nullptr;
    if (item.whole && (!item.absent || item.whole.storage() == item.local.storage())) {
      check_whole(item);
      check(item.whole.dtype() == dtype, "reduce_scatter wants one dtype:", item.whole.dtype(),
            "and", dtype);
      whole = bytes_of(item.whole);
      buffers.push_back(item.whole);
      const std::less<> before;
      if (before(result, whole + num_bytes(item.whole)) &&
          before(whole, result + num_bytes(item.local))) {
        const int64_t begin = item.cut.begin(rank()) * item.cut.inner;
        check(item.cut.outer == 1 && result == whole + begin * static_cast<int64_t>(size_of(dtype)),
              "the result of reduce_scatter lies in the whole, but not at its place");
        check(!how.accumulate, "reduce_scatter in place has nothing to add to");
        // Sums of halves wait in the second half of the whole's bytes, where nobody reads.
        if (size_of(next.wire) == 2) {
          next.sum = next.halves = whole + 2 * (item.cut.numel() + begin);
          next.widened = result;
          next.num_widened = item.cut.numel(rank());
        }
      }
    }
    check(item.absent || whole != nullptr || item.cut.numel() == 0,
          "reduce_scatter wants a whole that is not absent");
    next.summands = summands(whole, item.absent);
    todo.push_back(std::move(next));
  }
  auto body = [todo = std::move(todo), what, accumulate = how.accumulate,
               present = std::move(present)](Call& call) {
    const auto found = call.sum_all(todo, what, accumulate);
    call.widen_all(todo, found);
    if (present) *present = found;
  };
  return submit(kReduceScatter, tag, std::move(buffers), std::move(after), std::move(body));
}

Work LocalComm::all_reduce(std::vector<CutTensor> items, const Reduction& how, const CallTag& tag,
                           Event after, std::shared_ptr<std::vector<char>> present) {
  check(!how.accumulate, "all_reduce writes its result where the summands were");
  std::vector<Tensor> buffers;
  std::vector<Summed> todo;
  std::vector<std::byte*> sums;  // of the whole
  What what;
  what.add(how.wire);
  for (auto& item : items) {
    check(static_cast<bool>(item.whole), "all_reduce wants every whole, also an absent one");
    check_cut(item.cut, size());
    check_whole(item);
    check(item.cut.outer == 1, "all_reduce wants a cut of the first dim");
    what.add(item.cut);
    what.add(item.whole.dtype());
    std::byte* const whole = bytes_of(item.whole);
    Summed next{.cut = item.cut,
                .wire = wire_of(how, item.whole.dtype()),
                .summands = summands(whole, item.absent)};
    const auto element = static_cast<int64_t>(size_of(next.wire));
    sums.push_back(whole);
    if (element == 2) {
      // Behind the summands, in the second half of the whole's bytes.
      sums.back() += item.cut.numel() * element;
      next.halves = sums.back();
      next.widened = whole;
      next.num_widened = item.cut.numel();
    }
    next.sum = sums.back() + item.cut.begin(rank()) * item.cut.inner * element;
    todo.push_back(std::move(next));
    buffers.push_back(std::move(item.whole));
  }
  auto body = [todo = std::move(todo), sums = std::move(sums), what,
               present = std::move(present)](Call& call) {
    const auto found = call.sum_all(todo, what, false);
    Addresses parts;
    for (const auto& item : todo) parts.push_back(item.sum);
    call.meet(std::move(parts), what);
    for (size_t i = 0; i < todo.size(); ++i)
      if (found[i] != 0)
        call.gather(i, todo[i].cut, sums[i], static_cast<int64_t>(size_of(todo[i].wire)));
    call.leave();
    call.widen_all(todo, found);
    if (present) *present = found;
  };
  return submit(kAllReduce, tag, std::move(buffers), std::move(after), std::move(body));
}

Work LocalComm::broadcast(std::vector<Tensor> tensors, int root, const CallTag& tag, Event after) {
  check(root >= 0 && root < size(), "broadcast wants a root below", size(), "not", root);
  What what;
  what.add(root);
  std::vector<std::byte*> places;
  std::vector<int64_t> sizes;
  for (const auto& t : tensors) {
    check(t.is_contiguous(), "broadcast wants contiguous tensors");
    what.elements += t.numel();
    what.add(t.numel());
    what.add(t.dtype());
    places.push_back(bytes_of(t));
    sizes.push_back(num_bytes(t));
  }
  return submit(kBroadcast, tag, std::move(tensors), std::move(after),
                [places = std::move(places), sizes = std::move(sizes), what, root](Call& call) {
                  call.meet({places.begin(), places.end()}, what);
                  for (size_t i = 0; i < places.size(); ++i)
                    call.copy(root, call.address(root, i), places[i], sizes[i]);
                  call.leave();
                });
}

Work LocalComm::all_to_all(std::vector<Tensor> sent, std::vector<Tensor> received,
                           const CallTag& tag, Event after) {
  check(sent.size() == state_->ranks.size() && received.size() == sent.size(),
        "all_to_all wants a tensor for each of", size(), "ranks, got", sent.size(), "and",
        received.size());
  // Sizes travel along: a rank must not read past what the other sends.
  std::vector<int64_t> sizes, wanted;
  std::vector<std::byte*> places;
  Addresses mine;
  for (const auto& t : sent) {
    check(t.is_contiguous(), "all_to_all wants contiguous tensors");
    mine.push_back(bytes_of(t));
    sizes.push_back(num_bytes(t));
  }
  for (const auto& t : received) {
    check(t.is_contiguous(), "all_to_all wants contiguous tensors");
    places.push_back(bytes_of(t));
    wanted.push_back(num_bytes(t));
  }
  std::vector<Tensor> buffers = std::move(sent);
  buffers.insert(buffers.end(), received.begin(), received.end());
  auto body = [state = state_.get(), mine = std::move(mine), sizes = std::move(sizes),
               places = std::move(places), wanted = std::move(wanted)](Call& call) {
    const size_t N = sizes.size();
    const auto me = static_cast<size_t>(state->rank);
    Addresses all = mine;
    all.push_back(reinterpret_cast<const std::byte*>(sizes.data()));
    call.meet(std::move(all), {});
    for (size_t from = 0; from < N; ++from) {
      const int r = static_cast<int>(from);
      int64_t theirs = 0;
      call.read(r, call.address(r, N) + me * sizeof theirs, &theirs, sizeof theirs);
      check(theirs == wanted[from], "rank", state->world_rank(r), "sends", theirs,
            "bytes, and this rank wants", wanted[from]);
      call.copy(r, call.address(r, me), places[from], wanted[from]);
    }
    call.leave();
  };
  return submit(kAllToAll, tag, std::move(buffers), std::move(after), std::move(body));
}

void LocalComm::exchange(std::span<const std::byte> mine, std::span<std::byte> all,
                         const CallTag& tag) {
  check(all.size() == mine.size() * state_->ranks.size(), "exchange wants room for", size(),
        "times", mine.size(), "bytes, got", all.size());
  What what;
  what.elements = static_cast<int64_t>(mine.size());
  const int N = size();
  CallTag here = tag;
  here.where = RunOn::caller;
  const Work work = submit(kExchange, here, {}, {}, [mine, all, what, N](Call& call) {
    call.meet({mine.data()}, what);
    for (int r = 0; r < N; ++r)
      call.copy(r, call.address(r, 0), all.data() + static_cast<size_t>(r) * mine.size(),
                static_cast<int64_t>(mine.size()));
    call.leave();
  });
  work.event().wait();
}

Resting LocalComm::rest(const std::vector<Tensor>& locals) {
  Addresses mine;
  for (const auto& t : locals) {
    check(t.is_contiguous(), "resting tensors must be contiguous");
    mine.push_back(bytes_of(t));
  }
  Addresses all(mine.size() * state_->ranks.size());
  exchange(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
           {.unit = "resting tensors"});
  auto& table = state_->resting.emplace_back();
  for (auto at = all.begin(); table.size() < state_->ranks.size();
       at += static_cast<std::ptrdiff_t>(mine.size()))
    table.emplace_back(at, at + static_cast<std::ptrdiff_t>(mine.size()));
  const auto id = static_cast<int64_t>(state_->resting.size()) - 1;
  if (const auto& kept = state_->parts.kept) (*kept)[{state_.get(), id}] = locals;
  return {id};
}

void LocalComm::forget(Resting resting) {
  if (const auto& kept = state_->parts.kept) kept->erase({state_.get(), resting.id});
}

std::unique_ptr<Communicator> LocalComm::subgroup(const std::vector<int>& members) {
  const auto me = std::find(members.begin(), members.end(), rank());
  const bool rising =
      std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) == members.end();
  check(me != members.end() && rising && members.front() >= 0 && members.back() < size(),
        "a rank names the group that it is in, in rising order");
  std::vector<int> ranks;
  for (const int m : members) ranks.push_back(state_->world_rank(m));
  LocalCommParts parts = state_->parts;
  parts.stream = stream_;
  auto board = parts.boards->make(*this, members);
  return std::make_unique<LocalComm>(std::move(parts), std::move(board),
                                     static_cast<int>(me - members.begin()), std::move(ranks));
}

TrafficBytes LocalComm::received() const {
  const std::lock_guard lock(state_->mutex);
  return state_->received;
}

void LocalComm::set_observer(std::function<void(const CommSpan&)> observe) {
  const std::lock_guard lock(state_->observer_mutex);
  state_->observe = std::move(observe);
}

void LocalComm::abort(const std::string& cause) { state_->parts.world->abort(cause); }

}  // namespace sherd
