#include "dist/comm/thread_ranks.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sherd {

namespace {

class SharedAddresses final : public PeerMemory {
 public:
  bool is_shared() const override { return true; }
  void read(int /*rank*/, std::span<const Piece> pieces) const override {
    for (const Piece& piece : pieces)
      if (piece.bytes > 0) std::memcpy(piece.to, piece.from, piece.bytes);
  }
};

std::shared_ptr<Board> new_board(int ranks) {
  constexpr std::align_val_t kAlign{64};
  void* const memory = ::operator new(Board::bytes(ranks), kAlign);
  return {Board::create(memory, ranks), [](Board* board) { ::operator delete(board, kAlign); }};
}

/// Boards lie here while the members of a group fetch theirs.
class ThreadBoards final : public BoardMaker {
 public:
  std::shared_ptr<Board> make(Communicator& parent, const std::vector<int>& members) override {
    const CallTag tag{.unit = "subgroup"};
    const bool maker = parent.rank() == members[0];
    const int64_t mine = maker ? put(new_board(static_cast<int>(members.size()))) : 0;
    const auto all = exchange_one(parent, mine, tag);
    auto board = get(all[static_cast<size_t>(members[0])]);
    parent.barrier(tag);
    if (maker) drop(mine);
    return board;
  }

 private:
  int64_t put(std::shared_ptr<Board> board) {
    const std::lock_guard lock(mutex_);
    boards_.emplace(next_, std::move(board));
    return next_++;
  }
  std::shared_ptr<Board> get(int64_t id) {
    const std::lock_guard lock(mutex_);
    return boards_.at(id);
  }
  void drop(int64_t id) {
    const std::lock_guard lock(mutex_);
    boards_.erase(id);
  }

  std::mutex mutex_;
  int64_t next_ = 1;
  std::map<int64_t, std::shared_ptr<Board>> boards_;
};

/// How a rank ended.
struct Failure {
  std::string text;
  ErrorKind kind = ErrorKind::device;
};

}  // namespace

void run_thread_ranks(const ThreadRanksOptions& options, const std::function<void(Rank&)>& body) {
  check(options.ranks >= 1, "expected at least one rank, got", options.ranks);
  const auto world = new_board(options.ranks);
  const auto memory = std::make_shared<SharedAddresses>();
  const auto boards = std::make_shared<ThreadBoards>();
  std::vector<int> all(static_cast<size_t>(options.ranks));
  std::iota(all.begin(), all.end(), 0);
  // They live until all ranks have ended: a rank may still read what another one had.
  std::vector<RuntimePtr> runtimes(all.size());
  std::vector<std::shared_ptr<KeptTensors>> kept(all.size());
  std::mutex mutex;
  std::vector<Failure> failures;

  const auto run = [&](int r) {
    const Context in("rank ", r);
    const auto stream = std::make_shared<Stream>(StreamKind::worker, "communication");
    try {
      const RuntimePtr runtime = runtimes[static_cast<size_t>(r)] =
          Runtime::create({.threads = options.threads_per_rank,
                           .isa = options.isa,
                           .memory_limit = options.memory_limit,
                           .poison = options.poison});
      LocalComm comm({.runtime = runtime,
                      .stream = stream,
                      .memory = memory,
                      .boards = boards,
                      .world = world,
                      .timeout_s = options.timeout_s,
                      .link = options.link,
                      .lost_rank = {},
                      .kept = kept[static_cast<size_t>(r)] = std::make_shared<KeptTensors>()},
                     world, r, all);
      Rank rank{r, options.ranks, runtime, comm};
      body(rank);
      stream->synchronize();
    } catch (const std::exception& e) {
      Failure failure{.text = cause_at(r, e.what())};
      if (const auto* ours = dynamic_cast<const Error*>(&e)) failure.kind = ours->kind();
      world->abort(failure.text);
      const std::lock_guard lock(mutex);
      failures.push_back(std::move(failure));
    }
    world->set_ended(r);
  };

  std::vector<std::thread> threads;
  try {
    for (int r = 1; r < options.ranks; ++r) threads.emplace_back(run, r);
  } catch (const std::exception& e) {
    world->abort(detail::concat("cannot start a thread for each rank: ", e.what()));
  }
  run(0);
  for (auto& t : threads) t.join();
  if (failures.empty()) return;
  // Of the rank that caused it, if one did; else of the first that ended, and it has the cause.
  const std::string cause = world->cause();
  const auto causing = std::find_if(failures.begin(), failures.end(),
                                    [&](const Failure& f) { return f.text.rfind(cause, 0) == 0; });
  const Failure& failure = causing != failures.end() ? *causing : failures.front();
  throw Error(failure.kind, failure.text);
}

std::unique_ptr<Communicator> solo_communicator(const RuntimePtr& runtime) {
  const std::shared_ptr<Board> world = new_board(1);
  return std::make_unique<LocalComm>(
      LocalCommParts{.runtime = runtime,
                     .stream = std::make_shared<Stream>(StreamKind::caller),
                     .memory = std::make_shared<SharedAddresses>(),
                     .boards = std::make_shared<ThreadBoards>(),
                     .world = world,
                     .link = std::nullopt,
                     .lost_rank = {},
                     .kept = nullptr},
      world, 0, std::vector<int>{0});
}

}  // namespace sherd
