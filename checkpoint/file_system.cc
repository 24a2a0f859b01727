#include "checkpoint/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace sherd {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 1 << 20;     // many small tensors, few calls
constexpr std::size_t kWriteBytes = 64ull << 20;  // a call to write() takes less than 2 GiB

[[noreturn]] void fail_system(Site site, const std::string& path, int error) {
  fail_as(ErrorKind::io, site, path + ":", std::strerror(error));
}

class PosixFile : public WritableFile {
 public:
  explicit PosixFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail_system("cannot create", path_, errno);
    buffer_.reserve(kBufferBytes);
  }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;
  ~PosixFile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  void append(std::span<const std::byte> bytes) override {
    if (buffer_.size() + bytes.size() > kBufferBytes) flush();
    if (bytes.size() > kBufferBytes)
      write(bytes);
    else
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }

  void commit() override {
    flush();
    if (::fsync(fd_) != 0) fail_system("cannot sync", path_, errno);
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) fail_system("cannot close", path_, errno);
  }

 private:
  void flush() {
    write(buffer_);
    buffer_.clear();
  }
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), kWriteBytes));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_system("cannot write", path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  const std::string path_;
  int fd_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::unique_ptr<WritableFile> PosixFileSystem::create(const std::string& path) {
  return std::make_unique<PosixFile>(path);
}

void PosixFileSystem::make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_system("cannot make the folder", path, error.value());
}

void PosixFileSystem::replace_folder(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST)
    fail_system("cannot rename", from + " to " + to, errno);
  // `from` is the old one after the exchange.
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    remove(to);
    if (::rename(from.c_str(), to.c_str()) != 0)
      fail_system("cannot rename", from + " to " + to, errno);
    return;
  }
  remove(from);
}

void PosixFileSystem::remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_system("cannot remove", path, error.value());
}

void PosixFileSystem::sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_system("cannot open the folder", path, errno);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some file systems have no sync of folders and say so.
  if (error != 0 && error != EINVAL) fail_system("cannot sync the folder", path, error);
}

std::vector<std::string> PosixFileSystem::list(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(path, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error))
    names.push_back(at->path().filename().string());
  if (error && error.value() != ENOENT) fail_system("cannot list", path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t PosixFileSystem::available_bytes(const std::string& path) {
  fs::path at = fs::absolute(path);
  std::error_code error;
  while (!fs::exists(at, error) && at.has_parent_path() && at != at.root_path())
    at = at.parent_path();
  const fs::space_info space = fs::space(at, error);
  if (error) fail_system("cannot tell the free space of", path, error.value());
  return space.available;
}

}  // namespace sherd
