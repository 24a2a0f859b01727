#include "dist/comm/host_links.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/progress.h"

namespace sherd {

namespace {

// How often the board and the processes of this host are looked at.
constexpr int kLook_ms = 50;
// When a rank is gone, MPI may end those that were in touch with it, a whole host's too: whoever
// saw the first of them go has so long to say so.
constexpr double kBetterCause_s = 0.2;
// How long the others have to read the last of it.
constexpr double kMostClosing_s = 0.5;

/// What a host tells another; `bytes` of a cause follow.
struct Fact {
  enum Kind : uint32_t { ended = 1, cause = 2 };
  uint32_t kind = 0;
  int32_t rank = 0;  ///< that has ended
  uint32_t bytes = 0;
};

}  // namespace

struct HostLinks::Link {
  size_t host = 0;
  FileHandle socket;
  std::string heard;  // the beginning of what is not whole yet
  double closed_s = 0;
  bool judged = false;

  bool open() const { return socket.fd() >= 0; }
  void say(const Fact& fact, const std::string& text = {}) const {
    std::string all(reinterpret_cast<const char*>(&fact), sizeof fact);
    all += text;
    // A few KiB in a run, which the system keeps for a host that does not listen now. One that is
    // gone is seen when it is listened to.
    if (open()) send(socket.fd(), all.data(), all.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
};

HostLinks::HostLinks(Options options, std::vector<FileHandle> sockets)
    : options_(std::move(options)) {
  for (size_t h = 0; h < sockets.size(); ++h)
    if (sockets[h].fd() >= 0)
      links_.push_back({.host = h, .socket = std::move(sockets[h]), .heard = {}});
  thread_ = std::thread([this] { watch(); });
}

HostLinks::~HostLinks() {
  stop_ = true;
  thread_.join();
  // A socket that is closed before it is read would take with it what the other has not read.
  for (const Link& link : links_)
    if (link.open()) shutdown(link.socket.fd(), SHUT_WR);
  const double begin_s = steady_seconds();
  for (const Link& link : links_) {
    char part[4096];
    while (link.open() && steady_seconds() - begin_s < kMostClosing_s) {
      pollfd one{link.socket.fd(), POLLIN, 0};
      if (poll(&one, 1, kLook_ms) > 0 && recv(link.socket.fd(), part, sizeof part, 0) <= 0) break;
    }
  }
}

void HostLinks::watch() {
  const std::vector<int>& ranks = options_.hosts[static_cast<size_t>(options_.mine)].ranks;
  while (!stop_) {
    std::vector<pollfd> fds;
    // What is closed has a negative number, which poll passes over.
    for (const Link& link : links_) fds.push_back({link.socket.fd(), POLLIN, 0});
    for (const int r : ranks)
      fds.push_back({options_.world->ended(r) ? -1 : options_.processes->end_of(r), POLLIN, 0});
    poll(fds.data(), fds.size(), kLook_ms);
    for (const int r : ranks) {
      // In this order: a rank says that it has ended before it goes.
      if (!options_.processes->is_gone(r) || options_.world->ended(r)) continue;
      stop_all(options_.processes->name_of(r) + " is gone");
      options_.world->set_ended(r);
    }
    tell();
    for (size_t i = 0; i < links_.size(); ++i)
      if (fds[i].revents != 0) hear(links_[i]);
    for (Link& link : links_) judge(link);
  }
  tell();
}

void HostLinks::tell() {
  std::vector<int> ended;
  for (const int r : options_.hosts[static_cast<size_t>(options_.mine)].ranks)
    if (options_.world->ended(r) && std::count(told_.begin(), told_.end(), r) == 0)
      ended.push_back(r);
  // A rank that fails says why before it says that it has ended; so do those who pass it on.
  if (options_.world->aborted() && !told_cause_) {
    told_cause_ = true;
    const std::string cause = options_.world->cause();
    for (const Link& link : links_)
      link.say({Fact::cause, 0, static_cast<uint32_t>(cause.size())}, cause);
  }
  for (const int r : ended) {
    told_.push_back(r);
    for (const Link& link : links_) link.say({Fact::ended, r, 0});
  }
}

void HostLinks::hear(Link& link) {
  char part[4096];
  const ssize_t n = recv(link.socket.fd(), part, sizeof part, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    link.socket = FileHandle();
    link.closed_s = steady_seconds();
    return;
  }
  link.heard.append(part, static_cast<size_t>(n));
  for (Fact fact; link.heard.size() >= sizeof fact;) {
    link.heard.copy(reinterpret_cast<char*>(&fact), sizeof fact);
    if (link.heard.size() < sizeof fact + fact.bytes) return;
    if (fact.kind == Fact::ended) options_.world->set_ended(fact.rank);
    if (fact.kind == Fact::cause) options_.world->abort(link.heard.substr(sizeof fact, fact.bytes));
    link.heard.erase(0, sizeof fact + fact.bytes);
  }
}

void HostLinks::stop_all(const std::string& cause) {
  if (options_.world->aborted()) return;
  options_.world->abort(cause);
  // MPI ends a process that was sending to one that is gone: it may never come to say why.
  std::cerr << detail::concat("host ", options_.hosts[static_cast<size_t>(options_.mine)].name,
                              ": ", cause, "\n");
}

void HostLinks::judge(Link& link) {
  if (link.open() || link.judged || steady_seconds() - link.closed_s < kBetterCause_s) return;
  link.judged = true;
  const Host& host = options_.hosts[link.host];
  if (std::all_of(host.ranks.begin(), host.ranks.end(),
                  [&](int r) { return options_.world->ended(r); }))
    return;
  stop_all(detail::concat("rank ", host.ranks.front(), " of host ", host.name,
                          " is gone: its connection closed"));
  // Nobody will say of these that they have.
  for (const int r : host.ranks) options_.world->set_ended(r);
}

}  // namespace sherd
