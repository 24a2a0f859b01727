// Files of token ids, mapped and never read whole: our own, llm.c's, and any file taken as bytes.
//
// Our own, little-endian:
//   offset  bytes
//        0      8  "SHERDTOK"
//        8      4  version, 1
//       12      4  width: bytes an id, 1, 2 or 4
//       16      8  count of ids
//       24      4  vocab: ids are below it
//       28      4  largest id
//       32     32  SHA-256 of the tokenizer's JSON; zeros if unknown
//       64         ids
// llm.c's: 256 int32 (magic, version, count, zeros), then ids: magic 20240520 version 1 with 2
// bytes an id, magic 20240801 version 7 with 4.
// Invariant: a file that opens has as many ids as it says, at least one, and not a byte more.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/sha256.h"

namespace sherd {

/// Move-only; reading is thread-safe.
class TokenFile {
 public:
  /// throws io naming the path and what is wrong
  static TokenFile open(const std::string& path);
  /// Each byte of any file is an id.
  static TokenFile of_bytes(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::int64_t size() const { return size_; }
  int width() const { return width_; }
  /// What the header says, if it says so; not proven.
  std::optional<std::int64_t> vocab() const { return vocab_; }
  std::optional<Sha256Digest> tokenizer() const { return tokenizer_; }

  /// Ids at, at + 1, …; all inside the file. Ids of 4 bytes above 2^31 - 1 become that.
  void read(std::int64_t at, std::span<std::int32_t> ids) const;
  /// The first id that is not below `vocab`, within the first `limit` ids.
  std::optional<std::int64_t> find_at_least(std::int64_t vocab, std::int64_t limit) const;

 private:
  TokenFile(MappedFile file, std::size_t offset, int width);

  MappedFile file_;
  const std::byte* ids_;
  int width_;
  std::int64_t size_;
  std::optional<std::int64_t> vocab_;
  std::optional<Sha256Digest> tokenizer_;
};

/// Writes our own format; the file appears at commit().
class TokenFileWriter {
 public:
  /// `vocab` decides the width: the smallest that holds every id.
  TokenFileWriter(const std::string& path, std::int64_t vocab, const Sha256Digest& tokenizer = {});
  /// throws usage on an id outside the vocabulary
  void append(std::span<const std::int32_t> ids);
  /// throws usage if there are no ids
  void commit();

 private:
  AtomicFile file_;
  std::string path_;
  std::int64_t vocab_;
  int width_;
  Sha256Digest tokenizer_;
  std::uint64_t count_ = 0;
  std::int32_t largest_ = 0;
  std::vector<std::byte> packed_;
};

}  // namespace sherd
