// A file descriptor that is closed in time, and the error of a system call.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace sherd {

class FileHandle {
 public:
  explicit FileHandle(int fd = -1) : fd_(fd) {}
  ~FileHandle() {
    if (fd_ >= 0) close(fd_);
  }
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Throws Error(comm) for a system call that failed, which errno explains: "cannot …".
template <class... A>
[[noreturn]] void fail_system(const A&... a) {
  const int error = errno;
  fail_as(ErrorKind::comm, "cannot", detail::concat(a..., ": ", std::strerror(error)));
}

}  // namespace sherd
