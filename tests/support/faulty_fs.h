// A file system that fails when asked to: a disk of so many bytes, or a process killed at its n-th
// operation.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/file_system.h"

namespace sherd::test {

class FaultyFileSystem : public FileSystem {
 public:
  /// Bytes that can still be written before "No space left on device".
  uint64_t room = std::numeric_limits<uint64_t>::max();
  /// What available_bytes() says; a disk shared with others may promise more than it gives.
  uint64_t promised = std::numeric_limits<uint64_t>::max();
  /// Operations until the process is killed: this one and all later ones fail.
  int64_t operations_left = std::numeric_limits<int64_t>::max();
  int64_t operations = 0;

  std::unique_ptr<WritableFile> create(const std::string& path) override {
    operate(path);
    return std::make_unique<File>(*this, path, real_.create(path));
  }
  void make_folder(const std::string& path) override {
    operate(path);
    real_.make_folder(path);
  }
  void replace_folder(const std::string& from, const std::string& to) override {
    operate(to);
    real_.replace_folder(from, to);
  }
  void remove(const std::string& path) override {
    operate(path);
    real_.remove(path);
  }
  void sync_folder(const std::string& path) override {
    operate(path);
    real_.sync_folder(path);
  }
  std::vector<std::string> list(const std::string& path) override { return real_.list(path); }
  uint64_t available_bytes(const std::string&) override { return promised; }

 private:
  class File : public WritableFile {
   public:
    File(FaultyFileSystem& owner, std::string path, std::unique_ptr<WritableFile> real)
        : owner_(owner), path_(std::move(path)), real_(std::move(real)) {}
    void append(std::span<const std::byte> bytes) override {
      owner_.operate(path_);
      const uint64_t taken = std::min<uint64_t>(owner_.room, bytes.size());
      owner_.room -= taken;
      real_->append(bytes.first(taken));
      if (taken < bytes.size())
        fail_as(ErrorKind::io, "cannot write", path_ + ": No space left on device");
    }
    void commit() override {
      owner_.operate(path_);
      real_->commit();
    }

   private:
    FaultyFileSystem& owner_;
    std::string path_;
    std::unique_ptr<WritableFile> real_;
  };

  void operate(const std::string& path) {
    ++operations;
    if (operations_left-- <= 0) {
      operations_left = 0;
      fail_as(ErrorKind::io, "killed at", path);
    }
  }

  PosixFileSystem real_;
};

}  // namespace sherd::test
