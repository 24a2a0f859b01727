#include "base/file.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace sherd {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

[[noreturn]] void fail_errno(const std::string& path, const char* what, int error = errno) {
  fail_as(ErrorKind::io,
          (path + ": " + what + ": " + std::generic_category().message(error)).c_str());
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (fd_ < 0) fail_errno(path, "cannot open");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct stat stat_of(const std::string& path, int fd) {
  struct stat s {};
  if (::fstat(fd, &s) != 0) fail_errno(path, "cannot stat");
  if (S_ISDIR(s.st_mode)) fail_errno(path, "cannot read", EISDIR);
  return s;
}

void write_all(const std::string& path, int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      fail_errno(path, "cannot write");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

void sync_folder(const std::string& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  // Some file systems cannot sync a folder; the rename is then as durable as they make it.
  if (::fsync(folder.get()) != 0 && errno != EINVAL && errno != EROFS)
    fail_errno(path, "cannot sync");
}

std::string with_unit(std::uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int u = 0;
  for (; value >= 1024 && u < 4; ++u) value /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f %s" : "%.1f %s", value, units[u]);
  return text;
}

}  // namespace

std::string read_file(const std::string& path, std::size_t limit) {
  const Descriptor file(path, O_RDONLY);
  const struct stat s = stat_of(path, file.get());
  std::string content;
  // The size is only a hint: pipes and /proc have none.
  content.reserve(std::min<std::size_t>(limit, static_cast<std::size_t>(s.st_size)));
  std::vector<char> buffer(64 << 10);
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(path, "cannot read");
    if (n == 0) return content;
    if (static_cast<std::size_t>(n) > limit - content.size()) {
      fail_as(ErrorKind::io, (path + ": longer than " + with_unit(limit)).c_str());
    }
    content.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const Descriptor file(path, O_RDONLY);
  const struct stat s = stat_of(path, file.get());
  if (!S_ISREG(s.st_mode))
    fail_as(ErrorKind::io, (path + ": cannot map: not a regular file").c_str());
  size_ = static_cast<std::size_t>(s.st_size);
  if (size_ == 0) return;  // mmap refuses an empty range
  void* p = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (p == MAP_FAILED) fail_errno(path, "cannot map");
  data_ = static_cast<const std::byte*>(p);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  make_folders(parent_of(path_));
  // A name of its own for each writer: ranks and processes may prepare the same file at once. Not
  // mkstemp, whose files are private: only a process-wide change of the umask tells what it is.
  do {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random)
      fail_errno(path_, "cannot find a name");
    char suffix[20];
    std::snprintf(suffix, sizeof suffix, ".%016llx", static_cast<unsigned long long>(random));
    temporary_ = path_ + suffix;
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0) fail_errno(path_, "cannot create");
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    write_all(path_, fd_, bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  flush();
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      fail_errno(path_, "cannot write");
    }
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::commit() {
  flush();
  if (::fsync(fd_) != 0) fail_errno(path_, "cannot sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno(path_, "cannot rename onto");
  ::close(std::exchange(fd_, -1));
  sync_folder(parent_of(path_));
}

void AtomicFile::flush() {
  write_all(path_, fd_, buffer_);
  buffer_.clear();
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.append(content);
  file.commit();
}

std::uint64_t free_disk_bytes(const std::string& path) {
  std::filesystem::path at = std::filesystem::absolute(path);
  std::error_code ignored;
  while (!std::filesystem::exists(at, ignored) && at.has_relative_path()) at = at.parent_path();
  struct statvfs s {};
  if (::statvfs(at.c_str(), &s) != 0) fail_errno(path, "cannot ask for free space");
  return static_cast<std::uint64_t>(s.f_bavail) * s.f_frsize;
}

void check_disk_space(const std::string& path, std::uint64_t needed) {
  const std::uint64_t room = free_disk_bytes(path);
  if (needed <= room) return;
  fail_as(ErrorKind::io,
          (path + ": needs " + with_unit(needed) + ", free " + with_unit(room)).c_str());
}

void make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail_errno(path, "cannot create folder", error.value());
}

std::vector<std::string> expand_glob(const std::string& pattern) {
  glob_t found{};
  const int rc = ::glob(pattern.c_str(), GLOB_BRACE | GLOB_TILDE | GLOB_ERR, nullptr, &found);
  const int error = errno;
  const bool none =
      rc == GLOB_NOMATCH || (rc == GLOB_ABORTED && (error == ENOENT || error == ENOTDIR));
  std::vector<std::string> paths;
  if (rc == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::sort(paths.begin(), paths.end());  // glob sorts by locale
  if (rc != 0 && !none) fail_errno(pattern, "cannot list", error);
  return paths;
}

FileStamp file_stamp(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) fail_errno(path, "cannot stat");
  return {static_cast<std::uint64_t>(s.st_size),
          s.st_mtim.tv_sec * 1'000'000'000LL + s.st_mtim.tv_nsec};
}

}  // namespace sherd
