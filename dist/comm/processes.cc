#include "dist/comm/processes.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

namespace sherd {

namespace {

/// glibc has it from 2.36 on, but not for C++.
int pidfd_open(int32_t process) { return static_cast<int>(syscall(SYS_pidfd_open, process, 0)); }

}  // namespace

Processes::Processes(std::map<int, int32_t> ids, int me) : ids_(std::move(ids)) {
  for (const auto& [rank, id] : ids_) {
    if (rank == me) continue;
    FileHandle& end = ends_[rank] = FileHandle(pidfd_open(id));
    if (end.fd() < 0) fail_system("watch ", name_of(rank));
  }
}

void Processes::read(int rank, std::span<const Piece> pieces) const {
  std::vector<iovec> to, from;
  for (const Piece& piece : pieces) {
    if (piece.bytes == 0) continue;
    to.push_back({piece.to, piece.bytes});
    from.push_back({const_cast<void*>(piece.from), piece.bytes});
  }
  for (size_t at = 0; at < to.size();) {
    const size_t count = std::min<size_t>(to.size() - at, IOV_MAX);
    const ssize_t n = process_vm_readv(ids_.at(rank), &to[at], count, &from[at], count, 0);
    if (n <= 0) {
      if (n < 0 && errno == EINTR) continue;
      const int error = n < 0 ? errno : EFAULT;
      // Its memory goes before its end can be seen.
      if (error == ESRCH || is_gone(rank))
        fail_as(ErrorKind::comm, "lost a rank:", name_of(rank), "is gone");
      errno = error;
      fail_system("read the memory of ", name_of(rank), " (process_vm_readv)");
    }
    // Less than asked for may come; the rest is asked for again.
    for (auto left = static_cast<size_t>(n); left > 0;) {
      const size_t part = std::min(left, to[at].iov_len);
      for (iovec* v : {&to[at], &from[at]})
        *v = {static_cast<std::byte*>(v->iov_base) + part, v->iov_len - part};
      left -= part;
      if (to[at].iov_len == 0) ++at;
    }
  }
}

int Processes::end_of(int rank) const {
  const auto end = ends_.find(rank);
  return end != ends_.end() ? end->second.fd() : -1;
}

bool Processes::is_gone(int rank) const {
  pollfd end{end_of(rank), POLLIN, 0};
  return end.fd >= 0 && poll(&end, 1, 0) > 0;
}

std::string Processes::gone() const {
  for (const auto& [rank, end] : ends_)
    if (is_gone(rank)) return name_of(rank) + " is gone";
  return {};
}

std::string Processes::name_of(int rank) const {
  return detail::concat("rank ", rank, " (process ", ids_.at(rank), ")");
}

void let_siblings_read() { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

}  // namespace sherd
