#include "dist/comm/host_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/progress.h"

namespace sherd {

namespace {

// For one attempt to connect, and for all hosts.
constexpr int kAttempt_ms = 2000;
constexpr double kAll_s = 30;

/// What both sides of a new connection say first: the token of who was called, and who calls.
struct Greeting {
  uint64_t token = 0;
  int64_t host = 0;
};

std::array<uint32_t, 15> own_addresses() {
  std::array<uint32_t, 15> all{};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) fail_system("list this host's addresses");
  size_t count = 0;
  // Hosts that are one machine may have the loopback alone, so it comes last.
  for (const bool loopback : {false, true})
    for (const ifaddrs* a = list; a != nullptr && count < all.size(); a = a->ifa_next) {
      if (a->ifa_addr == nullptr || a->ifa_addr->sa_family != AF_INET) continue;
      if ((a->ifa_flags & IFF_UP) == 0 || ((a->ifa_flags & IFF_LOOPBACK) != 0) != loopback)
        continue;
      all[count++] = reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr.s_addr;
    }
  freeifaddrs(list);
  return all;
}

bool ready(int fd, int16_t what) {
  pollfd one{fd, what, 0};
  return poll(&one, 1, kAttempt_ms) > 0;
}

bool say(int fd, const Greeting& greeting) {
  return send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting;
}

bool hear(int fd, Greeting& greeting) {
  auto* to = reinterpret_cast<std::byte*>(&greeting);
  for (size_t got = 0; got < sizeof greeting;) {
    if (!ready(fd, POLLIN)) return false;
    const ssize_t n = recv(fd, to + got, sizeof greeting - got, 0);
    if (n <= 0) return false;
    got += static_cast<size_t>(n);
  }
  return true;
}

/// The kernel finds out within 5 s that the other machine does not answer.
void keep_alive(int fd) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 2);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 4000);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

/// None where nobody answers there, or another.
FileHandle connect_to(uint32_t address, const HostAddress& host, int mine) {
  FileHandle fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.fd() < 0) fail_system("make a socket");
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = address;
  to.sin_port = host.port;
  if (connect(fd.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    int error = errno;
    socklen_t size = sizeof error;
    if (error != EINPROGRESS || !ready(fd.fd(), POLLOUT) ||
        getsockopt(fd.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
      return FileHandle();
  }
  Greeting answer;
  if (!say(fd.fd(), {host.token, mine}) || !hear(fd.fd(), answer) || answer.token != host.token)
    return FileHandle();
  return fd;
}

}  // namespace

HostListener::HostListener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  auto* const at = reinterpret_cast<sockaddr*>(&any);
  if (socket_.fd() < 0 || bind(fd(), at, size) != 0 || listen(fd(), SOMAXCONN) != 0 ||
      getsockname(fd(), at, &size) != 0)
    fail_system("listen for the other hosts");
  address_.addresses = own_addresses();
  address_.port = any.sin_port;
  if (getrandom(&address_.token, sizeof address_.token, 0) != sizeof address_.token)
    fail_system("get a random number");
}

std::vector<FileHandle> connect_hosts(const HostListener& listener,
                                      const std::vector<HostAddress>& hosts,
                                      const std::vector<std::string>& names, int mine) {
  const double begin_s = steady_seconds();
  std::vector<FileHandle> sockets(hosts.size());
  const auto me = static_cast<size_t>(mine);
  // Each calls those before it and is called by those behind it, so nobody waits in a circle.
  for (size_t h = 0; h < me; ++h) {
    for (const uint32_t address : hosts[h].addresses)
      if (address != 0 && sockets[h].fd() < 0) sockets[h] = connect_to(address, hosts[h], mine);
    if (sockets[h].fd() < 0)
      fail_as(ErrorKind::comm, "cannot reach host", names[h], "from host", names[me],
              "by TCP at any of its addresses: the hosts of a run must reach each other");
  }
  for (size_t left = hosts.size() - me - 1; left > 0;) {
    if (steady_seconds() - begin_s > kAll_s) {
      const auto missing = std::find_if(sockets.begin() + mine + 1, sockets.end(),
                                        [](const FileHandle& s) { return s.fd() < 0; });
      fail_as(ErrorKind::comm, "host", names[static_cast<size_t>(missing - sockets.begin())],
              "does not reach host", names[me], "by TCP: the hosts of a run must reach each other");
    }
    if (!ready(listener.fd(), POLLIN)) continue;
    FileHandle fd(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    Greeting caller;
    if (fd.fd() < 0 || !hear(fd.fd(), caller) || caller.token != hosts[me].token ||
        caller.host <= mine || caller.host >= static_cast<int64_t>(hosts.size()) ||
        !say(fd.fd(), caller))
      continue;
    FileHandle& place = sockets[static_cast<size_t>(caller.host)];
    if (place.fd() < 0) --left;
    place = std::move(fd);
  }
  for (const FileHandle& s : sockets)
    if (s.fd() >= 0) keep_alive(s.fd());
  return sockets;
}

}  // namespace sherd
