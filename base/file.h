// Files: read whole, mapped, or written so that a reader sees all of it or none.
// Invariant: every error is of kind io and names the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// The content; throws io also when it is longer than `limit` bytes.
std::string read_file(const std::string& path, std::size_t limit = SIZE_MAX);

/// A file mapped read-only; it may be larger than memory. Move-only. Reading is thread-safe.
/// The file must not be truncated by others meanwhile (the kernel would raise SIGBUS).
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Writes beside `path`; commit() syncs and renames. Without commit() nothing is left behind.
/// Parent folders are made.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  /// Replaces `bytes.size()` bytes at `offset`, which must have been appended before (a header).
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  void commit();

 private:
  void flush();

  std::string path_, temporary_;
  int fd_ = -1;
  std::vector<std::byte> buffer_;
};

/// AtomicFile in one call.
void write_file(const std::string& path, std::string_view content);

/// What an unprivileged writer may still write on the file system that holds `path` (or its nearest
/// parent).
std::uint64_t free_disk_bytes(const std::string& path);

/// Throws io "path: needs 3GiB, free 1GiB" when there is less room than `needed`.
void check_disk_space(const std::string& path, std::uint64_t needed);

/// mkdir -p
void make_folders(const std::string& path);

/// The paths that match a shell pattern, sorted; a pattern without wildcards matches the path
/// itself if it exists.
std::vector<std::string> expand_glob(const std::string& pattern);

/// Size and time of last change; they tell whether a file is still the one seen before.
struct FileStamp {
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
FileStamp file_stamp(const std::string& path);

}  // namespace sherd
