// A socket from each host to each other one, made by the hosts' first ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dist/comm/file_handle.h"

namespace sherd {

/// Where a host can be reached. Plain data.
struct HostAddress {
  std::array<uint32_t, 15> addresses{};  ///< IPv4, as the network has them; 0: none
  uint16_t port = 0;
  uint64_t token = 0;  ///< who does not know it is not let in
};

/// Takes what the other hosts connect to this one.
class HostListener {
 public:
  /// On all addresses of this host. Throws Error(comm) if it cannot.
  HostListener();
  const HostAddress& address() const { return address_; }
  int fd() const { return socket_.fd(); }

 private:
  FileHandle socket_;
  HostAddress address_;
};

/// Called by one process of each host at once: a socket to each, by host, none to `mine`. They tell
/// when the other machine is gone without a word, too. Throws Error(comm) where a host cannot be
/// reached within half a minute; `names` are the hosts'.
std::vector<FileHandle> connect_hosts(const HostListener& listener,
                                      const std::vector<HostAddress>& hosts,
                                      const std::vector<std::string>& names, int mine);

}  // namespace sherd
