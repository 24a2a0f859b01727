// What writing a checkpoint asks of a file system: the seam at which tests let it fail.
// Invariant: every error is of kind io and names the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// A file being written. Without commit() its content is of no use to anyone.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  /// Writes what is buffered, and returns when it is on the disk.
  virtual void commit() = 0;
};

/// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// A new, empty file in place of any before.
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;
  /// With the folders above it.
  virtual void make_folder(const std::string& path) = 0;
  /// Renames the folder `from` to `to`. A folder that `to` named before is gone afterwards; at
  /// every instant `to` names either a whole one or (where the file system cannot exchange names)
  /// none.
  virtual void replace_folder(const std::string& from, const std::string& to) = 0;
  /// A file or a whole folder; nothing happens when it is gone.
  virtual void remove(const std::string& path) = 0;
  /// Returns when the names in a folder are on the disk.
  virtual void sync_folder(const std::string& path) = 0;
  /// Names in a folder, sorted; none if there is no such folder.
  virtual std::vector<std::string> list(const std::string& path) = 0;
  /// What may still be written on the disk that holds `path`, or its nearest parent.
  virtual uint64_t available_bytes(const std::string& path) = 0;
};

/// The one of this machine.
class PosixFileSystem : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  void make_folder(const std::string& path) override;
  void replace_folder(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_folder(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  uint64_t available_bytes(const std::string& path) override;
};

}  // namespace sherd
