// One long row of token ids, made of files one after another; a part of it is one too.
// Invariant: every id that read() gives is inside the vocabulary that check_vocab() was told.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/token_file.h"

namespace sherd {

/// Copies share the files. Reading is thread-safe.
class TokenSource {
 public:
  TokenSource() = default;
  explicit TokenSource(std::vector<TokenFile> files);

  std::int64_t size() const { return end_ - begin_; }
  bool empty() const { return size() == 0; }
  const std::vector<TokenFile>& files() const { return *files_; }

  /// Ids at, at + 1, …; throws usage past the end, and on an id outside the vocabulary, naming file
  /// and position.
  void read(std::int64_t at, std::span<std::int32_t> ids) const;
  /// The ids from begin to before end.
  TokenSource part(std::int64_t begin, std::int64_t end) const;
  /// Refuses, now or when it is read, an id that is not below `vocab`. Looks at the first `limit`
  /// ids of each file now: files may be larger than memory.
  void check_vocab(std::int64_t vocab, std::int64_t limit = std::int64_t{1} << 28);

 private:
  std::shared_ptr<const std::vector<TokenFile>> files_ = std::make_shared<std::vector<TokenFile>>();
  std::vector<std::int64_t> ends_;  // of each file, counted from the first
  std::int64_t begin_ = 0, end_ = 0;
  std::int64_t vocab_ = INT32_MAX;
};

}  // namespace sherd
