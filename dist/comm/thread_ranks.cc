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
#include "dist/comm/board_transport.h"
#include "dist/comm/group_comm.h"

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

/// Its boards lie here while the members of a group fetch theirs.
class ThreadTransports final : public TransportMaker {
 public:
  ThreadTransports(Waiting waiting, std::shared_ptr<const PeerMemory> memory)
      : waiting_(std::move(waiting)), memory_(std::move(memory)) {}

  std::unique_ptr<Transport> over(std::shared_ptr<Board> board, std::vector<int> ranks,
                                  int me) const {
    return std::make_unique<BoardTransport>(waiting_, std::move(board), memory_, std::move(ranks),
                                            me);
  }
  std::unique_ptr<Transport> make(Communicator& parent, const std::vector<int>& members,
                                  const std::vector<int>& ranks, int me) override {
    const CallTag tag{.unit = "subgroup"};
    const bool maker = parent.rank() == members[0];
    const int64_t mine = maker ? put(new_board(static_cast<int>(members.size()))) : 0;
    const auto all = exchange_one(parent, mine, tag);
    auto board = get(all[static_cast<size_t>(members[0])]);
    parent.barrier(tag);
    if (maker) drop(mine);
    return over(std::move(board), ranks, me);
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

  const Waiting waiting_;
  const std::shared_ptr<const PeerMemory> memory_;
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

void run_thread_ranks(const RanksOptions& options, const std::function<void(Rank&)>& body) {
  check(options.ranks >= 1, "expected at least one rank, got", options.ranks);
  const auto world = new_board(options.ranks);
  const auto transports = std::make_shared<ThreadTransports>(
      Waiting{.world = world, .timeout_s = options.timeout_s, .lost_rank = {}},
      std::make_shared<SharedAddresses>());
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
          make_rank_runtime(options, options.ranks);
      GroupComm comm({.runtime = runtime,
                      .stream = stream,
                      .transports = transports,
                      .world = world,
                      .link = options.link,
                      .kept = kept[static_cast<size_t>(r)] = std::make_shared<KeptTensors>()},
                     transports->over(world, all, r), r, all);
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
  const auto transports = std::make_shared<ThreadTransports>(
      Waiting{.world = world, .lost_rank = {}}, std::make_shared<SharedAddresses>());
  return std::make_unique<GroupComm>(
      GroupParts{.runtime = runtime,
                 .stream = std::make_shared<Stream>(StreamKind::caller),
                 .transports = transports,
                 .world = world,
                 .link = std::nullopt,
                 .kept = nullptr},
      transports->over(world, {0}, 0), 0, std::vector<int>{0});
}

}  // namespace sherd
