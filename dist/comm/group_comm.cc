#include "dist/comm/group_comm.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "dist/comm/group_call.h"
#include "dist/comm/part.h"

namespace sherd {

namespace {

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

/// What halves are divided by on their way.
float scale_of(const Reduction& how) { return std::ldexp(1.0F, how.shift); }

}  // namespace

GroupComm::GroupComm(GroupParts parts, std::unique_ptr<Transport> transport, int rank,
                     std::vector<int> ranks)
    : stream_(parts.stream),
      state_(std::make_shared<GroupState>(std::move(parts), std::move(transport), rank,
                                          std::move(ranks))) {}

GroupComm::~GroupComm() { set_observer(nullptr); }

int GroupComm::rank() const { return state_->rank; }

int GroupComm::size() const { return state_->size(); }

Work GroupComm::submit(GroupOp op, const CallTag& tag, std::vector<Tensor> buffers, Event after,
                       std::function<void(GroupCall&)> body) {
  // What moves by itself may still be moving when this rank knows of an error.
  std::vector<Tensor> moving;
  if (!state_->one_sided) moving = buffers;
  auto task = [state = state_, op, tag, moving = std::move(moving), body = std::move(body)] {
    const Context in(op_name(op), " of ", tag.unit);
    GroupCall call(*state, op, tag);
    try {
      state->parts.world->throw_if_aborted();
      body(call);
      call.finish();
    } catch (const std::exception& e) {
      // Peers may be waiting in this call; they end with the same cause. A cause that is there
      // already stays.
      state->parts.world->abort(cause_at(state->world_rank(state->rank), e.what()));
      using Memory = std::pair<std::shared_ptr<GroupState>, std::vector<Tensor>>;
      state->transport->give_up(std::make_shared<const Memory>(state, moving));
      throw;
    }
  };
  return {stream_->submit(std::move(task), {std::move(after)}, tag.where), std::move(buffers)};
}

Work GroupComm::all_gather(std::vector<CutTensor> items, const CallTag& tag, Event after,
                           Resting resting) {
  std::vector<Tensor> buffers;
  std::vector<GatheredItem> todo;
  Addresses mine;
  CallFacts what;
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
                [todo = std::move(todo), mine = std::move(mine), what, known](GroupCall& call) {
                  if (known != nullptr)
                    call.know(*known);
                  else
                    call.meet(mine, what);
                  call.gather(todo);
                  if (known == nullptr) call.leave();
                });
}

Work GroupComm::reduce_scatter(std::vector<CutTensor> items, const Reduction& how,
                               const CallTag& tag, Event after,
                               std::shared_ptr<std::vector<char>> present) {
  std::vector<Tensor> buffers;
  std::vector<SummedItem> todo;
  CallFacts what;
  what.add(how.wire);
  what.add(how.shift);
  for (const auto& item : items) {
    check_cut(item.cut, size());
    check_local(item, rank());
    const DType dtype = item.local.dtype();
    what.add(item.cut);
    what.add(dtype);
    std::byte* const result = bytes_of(item.local);
    SummedItem next{
        .cut = item.cut, .wire = wire_of(how, dtype), .scale = scale_of(how), .sum = result};
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
        if (size_of(next.wire) == 2)
          next.keep_halves(whole, rank(), result, item.cut.numel(rank()));
      }
    }
    check(item.absent || whole != nullptr || item.cut.numel() == 0,
          "reduce_scatter wants a whole that is not absent");
    next.summands = summands(whole, item.absent);
    todo.push_back(std::move(next));
  }
  auto body = [todo = std::move(todo), what, isa = state_->parts.runtime->isa(),
               present = std::move(present)](GroupCall& call) {
    const auto found = call.sum(todo, what);
    widen(todo, found, isa);
    if (present) *present = found;
  };
  return submit(kReduceScatter, tag, std::move(buffers), std::move(after), std::move(body));
}

Work GroupComm::all_reduce(std::vector<CutTensor> items, const Reduction& how, const CallTag& tag,
                           Event after, std::shared_ptr<std::vector<char>> present) {
  std::vector<Tensor> buffers;
  std::vector<SummedItem> todo;
  std::vector<GatheredItem> sums;  // of the whole
  CallFacts what;
  what.add(how.wire);
  what.add(how.shift);
  for (auto& item : items) {
    check(static_cast<bool>(item.whole), "all_reduce wants every whole, also an absent one");
    check_cut(item.cut, size());
    check_whole(item);
    check(item.cut.outer == 1, "all_reduce wants a cut of the first dim");
    what.add(item.cut);
    what.add(item.whole.dtype());
    std::byte* const whole = bytes_of(item.whole);
    SummedItem next{.cut = item.cut,
                    .wire = wire_of(how, item.whole.dtype()),
                    .scale = scale_of(how),
                    .summands = summands(whole, item.absent)};
    const auto element = static_cast<int64_t>(size_of(next.wire));
    next.sum = whole + item.cut.begin(rank()) * item.cut.inner * element;
    if (element == 2) next.keep_halves(whole, rank(), whole, item.cut.numel());
    sums.push_back({item.cut, next.halves != nullptr ? next.halves : whole, element});
    todo.push_back(std::move(next));
    buffers.push_back(std::move(item.whole));
  }
  auto body = [todo = std::move(todo), sums = std::move(sums), what,
               isa = state_->parts.runtime->isa(), present = std::move(present)](GroupCall& call) {
    const auto found = call.sum(todo, what);
    Addresses parts;
    for (const auto& item : todo) parts.push_back(item.sum);
    call.meet(std::move(parts), what);
    call.gather(sums, found);
    call.leave();
    widen(todo, found, isa);
    if (present) *present = found;
  };
  return submit(kAllReduce, tag, std::move(buffers), std::move(after), std::move(body));
}

Work GroupComm::broadcast(std::vector<Tensor> tensors, int root, const CallTag& tag, Event after) {
  check(root >= 0 && root < size(), "broadcast wants a root below", size(), "not", root);
  CallFacts what;
  what.add(root);
  std::vector<std::byte*> places;
  std::vector<size_t> sizes;
  for (const auto& t : tensors) {
    check(t.is_contiguous(), "broadcast wants contiguous tensors");
    what.elements += t.numel();
    what.add(t.numel());
    what.add(t.dtype());
    places.push_back(bytes_of(t));
    sizes.push_back(static_cast<size_t>(num_bytes(t)));
  }
  return submit(kBroadcast, tag, std::move(tensors), std::move(after),
                [places = std::move(places), sizes = std::move(sizes), what, root, me = rank(),
                 N = size()](GroupCall& call) {
                  call.meet({places.begin(), places.end()}, what);
                  std::vector<PeerMemory::Piece> pieces;
                  for (size_t i = 0; i < places.size(); ++i)
                    pieces.push_back({call.address(root, i), places[i], sizes[i]});
                  for (int r = 0; r < N && me == root; ++r) call.offer(r, pieces);
                  call.copy(root, pieces);
                  call.wait_fetched();
                  call.leave();
                });
}

Work GroupComm::all_to_all(std::vector<Tensor> sent, std::vector<Tensor> received,
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
               places = std::move(places), wanted = std::move(wanted)](GroupCall& call) {
    const size_t N = sizes.size();
    const auto me = static_cast<size_t>(state->rank);
    using Piece = PeerMemory::Piece;
    const auto for_ranks = [&](const auto& visit) {
      for (size_t r = 0; r < N; ++r) visit(static_cast<int>(r), r);
    };
    // What this rank sends to each, and what each sends to it, in bytes.
    state->staged.resize(2 * N * sizeof(int64_t));
    auto* const sends = reinterpret_cast<int64_t*>(state->staged.data());
    int64_t* const theirs = sends + N;
    std::copy(sizes.begin(), sizes.end(), sends);
    Addresses all = mine;
    all.push_back(state->staged.data());
    call.meet(std::move(all), {});
    for_ranks([&](int r, size_t i) {
      const Piece size{sends + i, nullptr, sizeof *sends};
      call.offer(r, {&size, 1});
    });
    for_ranks([&](int r, size_t i) {
      const Piece size{call.address(r, N) + me * sizeof *sends, theirs + i, sizeof *sends};
      call.read(r, {&size, 1});
    });
    call.wait_fetched();
    for_ranks([&](int r, size_t i) {
      check(theirs[i] == wanted[i], "rank", state->world_rank(r), "sends", theirs[i],
            "bytes, and this rank wants", wanted[i]);
    });
    for_ranks([&](int r, size_t i) {
      const Piece piece{mine[i], nullptr, static_cast<size_t>(sizes[i])};
      call.offer(r, {&piece, 1});
    });
    for_ranks([&](int r, size_t i) {
      const Piece piece{call.address(r, me), places[i], static_cast<size_t>(wanted[i])};
      call.copy(r, {&piece, 1});
    });
    call.wait_fetched();
    call.leave();
  };
  return submit(kAllToAll, tag, std::move(buffers), std::move(after), std::move(body));
}

void GroupComm::exchange(std::span<const std::byte> mine, std::span<std::byte> all,
                         const CallTag& tag) {
  check(all.size() == mine.size() * state_->ranks.size(), "exchange wants room for", size(),
        "times", mine.size(), "bytes, got", all.size());
  CallFacts what;
  what.elements = static_cast<int64_t>(mine.size());
  const int N = size();
  CallTag here = tag;
  here.where = RunOn::caller;
  const auto body = [state = state_.get(), mine, all, what, N](GroupCall& call) {
    // The caller's memory may go before others have done with it.
    const size_t bytes = mine.size();
    state->staged.resize((static_cast<size_t>(N) + 1) * bytes);
    std::byte* const shown = state->staged.data() + all.size();
    std::copy(mine.begin(), mine.end(), shown);
    call.meet({shown}, what);
    const PeerMemory::Piece own{shown, nullptr, bytes};
    for (int r = 0; r < N; ++r) call.offer(r, {&own, 1});
    for (int r = 0; r < N; ++r) {
      const PeerMemory::Piece words{call.address(r, 0),
                                    state->staged.data() + static_cast<size_t>(r) * bytes, bytes};
      call.copy(r, {&words, 1});
    }
    call.wait_fetched();
    call.leave();
    std::copy_n(state->staged.data(), all.size(), all.begin());
  };
  submit(kExchange, here, {}, {}, body).event().wait();
}

Resting GroupComm::rest(const std::vector<Tensor>& locals) {
  Addresses mine;
  for (const auto& t : locals) {
    check(t.is_contiguous(), "resting tensors must be contiguous");
    mine.push_back(bytes_of(t));
  }
  // Nobody here reads what a rank away has.
  if (!state_->one_sided) return {};
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

void GroupComm::forget(Resting resting) {
  if (const auto& kept = state_->parts.kept) kept->erase({state_.get(), resting.id});
}

std::unique_ptr<Communicator> GroupComm::subgroup(const std::vector<int>& members) {
  const auto me = std::find(members.begin(), members.end(), rank());
  const bool rising =
      std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) == members.end();
  check(me != members.end() && rising && members.front() >= 0 && members.back() < size(),
        "a rank names the group that it is in, in rising order");
  std::vector<int> ranks;
  for (const int m : members) ranks.push_back(state_->world_rank(m));
  GroupParts parts = state_->parts;
  parts.stream = stream_;
  const auto my_place = static_cast<int>(me - members.begin());
  auto transport = parts.transports->make(*this, members, ranks, my_place);
  return std::make_unique<GroupComm>(std::move(parts), std::move(transport), my_place,
                                     std::move(ranks));
}

TrafficBytes GroupComm::received() const {
  const std::lock_guard lock(state_->mutex);
  return state_->received;
}

void GroupComm::set_observer(std::function<void(const CommSpan&)> observe) {
  const std::lock_guard lock(state_->observer_mutex);
  state_->observe = std::move(observe);
}

void GroupComm::abort(const std::string& cause) { state_->parts.world->abort(cause); }

}  // namespace sherd
