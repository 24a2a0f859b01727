// LocalComm: the collectives of ranks on one host, which read each other's memory: one rendezvous a
// call, then each rank copies or sums what it needs. Serves threads and processes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dist/comm/board.h"
#include "dist/comm/communicator.h"
#include "dist/comm/peer_memory.h"

namespace sherd {

/// A slower link to imitate: a collective takes at least latency + received bytes / rate from when
/// all ranks are there.
struct Link {
  double gbps = 10;  ///< gigabits a second
  double latency_us = 0;
};

/// Where a group finds its board.
class BoardMaker {
 public:
  virtual ~BoardMaker() = default;
  /// Called by all members of a group (ranks of `parent`), rising; the same board for each of them.
  virtual std::shared_ptr<Board> make(Communicator& parent, const std::vector<int>& members) = 0;
};

/// Tensors by the group in which they rest, and their number there.
using KeptTensors = std::map<std::pair<const void*, int64_t>, std::vector<Tensor>>;

/// What a rank's groups share. `runtime` does the sums.
struct LocalCommParts {
  RuntimePtr runtime;
  std::shared_ptr<Stream> stream;
  std::shared_ptr<const PeerMemory> memory;
  std::shared_ptr<BoardMaker> boards;
  std::shared_ptr<Board> world;
  double timeout_s = 300;
  std::optional<Link> link;
  std::function<std::string()> lost_rank;
  /// Of this rank, by who rested them; it lives until all ranks have ended.
  std::shared_ptr<KeptTensors> kept;
};

enum LocalOp : uint32_t;
class LocalCall;
struct LocalState;

class LocalComm final : public Communicator {
 public:
  /// `ranks`: of the group's members in the world; `rank` indexes it.
  LocalComm(LocalCommParts parts, std::shared_ptr<Board> board, int rank, std::vector<int> ranks);
  /// Waits for nobody; calls in flight go on. The observer is not called after it.
  ~LocalComm() override;

  int rank() const override;
  int size() const override;
  Work all_gather(std::vector<CutTensor> items, const CallTag& tag, Event after,
                  Resting resting) override;
  Work reduce_scatter(std::vector<CutTensor> items, const Reduction& how, const CallTag& tag,
                      Event after, std::shared_ptr<std::vector<char>> present) override;
  Work all_reduce(std::vector<CutTensor> items, const Reduction& how, const CallTag& tag,
                  Event after, std::shared_ptr<std::vector<char>> present) override;
  Work broadcast(std::vector<Tensor> tensors, int root, const CallTag& tag, Event after) override;
  Work all_to_all(std::vector<Tensor> sent, std::vector<Tensor> received, const CallTag& tag,
                  Event after) override;
  void exchange(std::span<const std::byte> mine, std::span<std::byte> all,
                const CallTag& tag) override;
  Resting rest(const std::vector<Tensor>& locals) override;
  void forget(Resting resting) override;
  std::unique_ptr<Communicator> subgroup(const std::vector<int>& members) override;
  TrafficBytes received() const override;
  void set_observer(std::function<void(const CommSpan&)> observe) override;
  void abort(const std::string& cause) override;

 private:
  Work submit(LocalOp op, const CallTag& tag, std::vector<Tensor> buffers, Event after,
              std::function<void(LocalCall&)> body);

  const std::shared_ptr<Stream> stream_;
  const std::shared_ptr<LocalState> state_;  // calls in flight hold it, too
};

}  // namespace sherd
