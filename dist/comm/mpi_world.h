// MpiWorld: how the processes that mpirun started find each other: who is on which host, their
// boards and processes there, and the links between hosts.
#pragma once

#include <memory>
#include <vector>

#include "dist/comm/board.h"
#include "dist/comm/host_links.h"
#include "dist/comm/mpi_messages.h"
#include "dist/comm/processes.h"
#include "dist/comm/transport.h"

namespace sherd {

struct MpiWorld {
  std::vector<Host> hosts;
  int mine = 0;                  ///< the host of this rank
  std::shared_ptr<Board> board;  ///< where this host's ranks hear of all others' ends and of aborts
  std::shared_ptr<Board> near;   ///< where they meet; the same where there is one host
  std::shared_ptr<Processes> processes;
  std::shared_ptr<MpiMessages> messages;  ///< null where there is one host
  std::unique_ptr<HostLinks> links;       ///< of a host's first rank, where there are several

  const std::vector<int>& near_ranks() const { return hosts[static_cast<size_t>(mine)].ranks; }
  /// Whether all ranks have ended; whether each has, or is gone from this host.
  bool all_ended() const;
  bool all_over() const;
};

/// MPI has begun; called by all its ranks. A host is what shares its kernel, its processes' numbers
/// and its name; if `ranks_per_host` > 0, so many ranks of that. Throws Error(comm), the same on
/// all ranks, after MPI is done with.
MpiWorld meet_world(int rank, int ranks, int ranks_per_host);

/// The groups of a rank in `world`, which outlives them.
class MpiTransports final : public TransportMaker {
 public:
  MpiTransports(const MpiWorld& world, double timeout_s);

  /// Of all `ranks`; this one is `me`.
  std::unique_ptr<Transport> world(const std::vector<int>& ranks, int me) const;
  std::unique_ptr<Transport> make(Communicator& parent, const std::vector<int>& members,
                                  const std::vector<int>& ranks, int me) override;

 private:
  std::vector<int> near_of(const std::vector<int>& ranks) const;
  /// `near`: near_of(ranks), who meet on `board`.
  std::unique_ptr<Transport> over(std::shared_ptr<Board> board, const std::vector<int>& near,
                                  const std::vector<int>& ranks, int me) const;

  const MpiWorld& world_;
  const double timeout_s_;
};

}  // namespace sherd
