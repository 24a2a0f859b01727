// HostLinks: what happens on one host becomes known on the others: which ranks have ended, and why
// all must. A thread of each host's first rank, with a socket to each other host's, watches over
// the ranks of its host.
// Invariant: the first cause that a host's board has is sent to all others; a host whose socket
// closes before its ranks have ended is gone, and so are they. Who is gone has ended, too; it is
// said on standard error at once.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dist/comm/board.h"
#include "dist/comm/file_handle.h"
#include "dist/comm/processes.h"

namespace sherd {

/// A host and its ranks, rising.
struct Host {
  std::string name;
  std::vector<int> ranks;
};

class HostLinks {
 public:
  struct Options {
    std::vector<Host> hosts;
    int mine = 0;  ///< which of them is this one
    /// Of the world, as this host has it: its ranks say there that they have ended.
    std::shared_ptr<Board> world;
    /// Of this host.
    std::shared_ptr<const Processes> processes;
  };
  /// `sockets`: of connect_hosts.
  HostLinks(Options options, std::vector<FileHandle> sockets);
  /// Tells the others what there is to tell, then closes the sockets.
  ~HostLinks();
  HostLinks(const HostLinks&) = delete;
  HostLinks& operator=(const HostLinks&) = delete;

 private:
  struct Link;

  void watch();
  void tell();
  void hear(Link& link);
  void judge(Link& link);
  void stop_all(const std::string& cause);

  const Options options_;
  std::vector<Link> links_;
  std::vector<int> told_;  // ranks of this host that have ended
  bool told_cause_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace sherd
