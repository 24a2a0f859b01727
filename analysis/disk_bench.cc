#include "analysis/disk_bench.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "analysis/median.h"
#include "base/error.h"
#include "base/progress.h"
#include "checkpoint/file_system.h"
#include "tensor/random.h"

namespace sherd {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;
constexpr int kSyncs = 20;

/// Bytes that no disk can make less of.
std::vector<std::byte> random_piece() {
  std::vector<std::byte> piece(kPiece);
  for (std::size_t i = 0; i < kPiece; i += 16) {
    const auto words = random_words({1, 2}, i / 16);
    std::memcpy(piece.data() + i, words.data(), 16);
  }
  return piece;
}

/// A folder of our own in another, gone at the end.
class Scratch {
 public:
  Scratch(FileSystem& files, const std::string& folder)
      : files_(files), path_(folder + "/sherd-bench-" + std::to_string(getpid())) {
    files_.make_folder(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    try {
      files_.remove(path_);
    } catch (const Error&) {  // what went wrong before is the better message
    }
  }
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  FileSystem& files_;
  const std::string path_;
};

double time_read(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_as(ErrorKind::io, "cannot open", path, std::strerror(errno));
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  std::vector<std::byte> piece(kPiece);
  const double begin_s = steady_seconds();
  ssize_t got = 0;
  while ((got = ::read(fd, piece.data(), piece.size())) > 0) {
  }
  const int error = errno;
  const double seconds = steady_seconds() - begin_s;
  ::close(fd);
  if (got < 0) fail_as(ErrorKind::io, "cannot read", path, std::strerror(error));
  return seconds;
}

}  // namespace

DiskTimes time_disk(const std::string& folder, std::int64_t bytes) {
  check(bytes >= 1 << 20, "expected at least 1 MiB to write, got", bytes, "bytes");
  PosixFileSystem files;
  const std::uint64_t room = files.available_bytes(folder);
  if (room < static_cast<std::uint64_t>(bytes) + kPiece)
    fail_as(ErrorKind::io, "the disk has", room, "bytes free, wanted are", bytes, "in", folder,
            "; --bytes takes fewer");
  const std::vector<std::byte> piece = random_piece();
  const Scratch scratch(files, folder);
  DiskTimes times{.bytes = bytes};

  double begin_s = steady_seconds();
  {
    const auto file = files.create(scratch / "large");
    for (std::int64_t left = bytes; left > 0; left -= static_cast<std::int64_t>(kPiece))
      file->append(std::span(piece).first(std::min(kPiece, static_cast<std::size_t>(left))));
    file->commit();
  }
  times.write_s = steady_seconds() - begin_s;
  times.read_s = time_read(scratch / "large");

  std::vector<double> syncs;
  for (int i = 0; i < kSyncs; ++i) {
    begin_s = steady_seconds();
    const auto file = files.create(scratch / ("small" + std::to_string(i)));
    file->append(std::span(piece).first(4096));
    file->commit();
    syncs.push_back((steady_seconds() - begin_s) * 1e3);
  }
  times.sync_ms = median(syncs);
  return times;
}

}  // namespace sherd
