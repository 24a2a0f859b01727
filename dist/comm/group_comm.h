// GroupComm: the collectives of a group of ranks over a transport: one rendezvous a call, then each
// rank copies or sums what it needs. The same for threads, processes and several hosts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dist/comm/board.h"
#include "dist/comm/communicator.h"
#include "dist/comm/ranks_options.h"
#include "dist/comm/transport.h"

namespace sherd {

/// Tensors by the group in which they rest, and their number there.
using KeptTensors = std::map<std::pair<const void*, int64_t>, std::vector<Tensor>>;

/// What a rank's groups share. `runtime` does the sums.
struct GroupParts {
  RuntimePtr runtime;
  std::shared_ptr<Stream> stream;
  std::shared_ptr<TransportMaker> transports;
  /// Where all ranks hear of an abort.
  std::shared_ptr<Board> world;
  std::optional<Link> link;
  /// Of this rank, by who rested them; it lives until all ranks have ended. May be null.
  std::shared_ptr<KeptTensors> kept;
};

enum GroupOp : uint32_t;
class GroupCall;
struct GroupState;

class GroupComm final : public Communicator {
 public:
  /// `ranks`: of the group's members in the world; `rank` indexes it.
  GroupComm(GroupParts parts, std::unique_ptr<Transport> transport, int rank,
            std::vector<int> ranks);
  /// Waits for nobody; calls in flight go on. The observer is not called after it.
  ~GroupComm() override;

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
  Work submit(GroupOp op, const CallTag& tag, std::vector<Tensor> buffers, Event after,
              std::function<void(GroupCall&)> body);

  const std::shared_ptr<Stream> stream_;
  const std::shared_ptr<GroupState> state_;  // calls in flight hold it, too
};

}  // namespace sherd
