#include "train/token_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace sherd {
namespace {

static_assert(std::endian::native == std::endian::little, "headers and ids are copied as they are");

constexpr char kMagic[] = "SHERDTOK";
constexpr std::uint32_t kVersion = 1;

struct Header {
  char magic[8];
  std::uint32_t version, width;
  std::uint64_t count;
  std::uint32_t vocab, largest;
  Sha256Digest tokenizer;
};
static_assert(sizeof(Header) == 64);

constexpr std::size_t kLlmcHeaderBytes = 256 * sizeof(std::int32_t);
struct LlmcFormat {
  std::int32_t magic, version;
  int width;
};
constexpr LlmcFormat kLlmcFormats[] = {{20240520, 1, 2}, {20240801, 7, 4}};

[[noreturn]] void refuse(const std::string& path, const std::string& text) {
  fail_as(ErrorKind::io, (path + ": " + text).c_str());
}

/// The ids must fill the file behind the header exactly.
void check_size(const std::string& path, std::size_t file_bytes, std::size_t header_bytes,
                std::uint64_t count, std::uint64_t width) {
  const std::uint64_t room = file_bytes - header_bytes;
  if (count == 0) refuse(path, "has no tokens");
  if (count > room / width) {
    refuse(path, "is truncated: its header says " + std::to_string(count) + " tokens of " +
                     std::to_string(width) + " bytes, but " + std::to_string(room) +
                     " bytes follow");
  }
  if (count * width != room) {
    refuse(path, "has " + std::to_string(room - count * width) + " bytes after the last of its " +
                     std::to_string(count) + " tokens");
  }
}

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <class T>
void widen(const std::byte* from, std::span<std::int32_t> to) {
  constexpr auto kLargest = static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::uint32_t id = load<T>(from + i * sizeof(T));
    to[i] = static_cast<std::int32_t>(std::min(id, kLargest));
  }
}

}  // namespace

TokenFile::TokenFile(MappedFile file, std::size_t offset, int width)
    : file_(std::move(file)),
      ids_(file_.bytes().data() + offset),
      width_(width),
      size_(static_cast<std::int64_t>((file_.bytes().size() - offset) /
                                      static_cast<std::size_t>(width))) {}

TokenFile TokenFile::of_bytes(const std::string& path) {
  MappedFile file(path);
  if (file.bytes().empty()) refuse(path, "is empty");
  TokenFile out(std::move(file), 0, 1);
  out.vocab_ = 256;
  return out;
}

TokenFile TokenFile::open(const std::string& path) {
  MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.empty()) refuse(path, "is empty");

  if (bytes.size() >= sizeof kMagic - 1 &&
      std::memcmp(bytes.data(), kMagic, sizeof kMagic - 1) == 0) {
    if (bytes.size() < sizeof(Header)) refuse(path, "is truncated inside its header of 64 bytes");
    const auto header = load<Header>(bytes.data());
    if (header.version != kVersion) {
      refuse(path, "has version " + std::to_string(header.version) +
                       " of the token format; this version reads " + std::to_string(kVersion));
    }
    if (header.width != 1 && header.width != 2 && header.width != 4) {
      refuse(path, "has tokens of " + std::to_string(header.width) + " bytes; expected 1, 2 or 4");
    }
    check_size(path, bytes.size(), sizeof header, header.count, header.width);
    if (header.vocab == 0 || header.vocab > std::numeric_limits<std::int32_t>::max() ||
        header.largest >= header.vocab) {
      refuse(path, "has a largest token of " + std::to_string(header.largest) +
                       " in a vocabulary of " + std::to_string(header.vocab));
    }
    TokenFile out(std::move(file), sizeof header, static_cast<int>(header.width));
    out.vocab_ = header.vocab;
    if (header.tokenizer != Sha256Digest{}) out.tokenizer_ = header.tokenizer;
    return out;
  }

  if (bytes.size() >= sizeof(std::int32_t)) {
    const auto magic = load<std::int32_t>(bytes.data());
    for (const LlmcFormat& format : kLlmcFormats) {
      if (magic != format.magic) continue;
      if (bytes.size() < kLlmcHeaderBytes)
        refuse(path, "is truncated inside its header of 1024 bytes");
      const auto version = load<std::int32_t>(bytes.data() + 4);
      const auto count = load<std::int32_t>(bytes.data() + 8);
      if (version != format.version) {
        refuse(path, "has version " + std::to_string(version) +
                         " of llm.c's token format; this version reads " +
                         std::to_string(format.version));
      }
      if (count < 0) refuse(path, "says that it has " + std::to_string(count) + " tokens");
      check_size(path, bytes.size(), kLlmcHeaderBytes, static_cast<std::uint64_t>(count),
                 static_cast<std::uint64_t>(format.width));
      return {std::move(file), kLlmcHeaderBytes, format.width};
    }
  }
  const std::string_view head = file.text().substr(0, 8);
  refuse(path, "is no token file: it starts with " + quoted(head) +
                   "; expected \"SHERDTOK\" or llm.c's header (a text must not be named .bin)");
}

void TokenFile::read(std::int64_t at, std::span<std::int32_t> ids) const {
  check(at >= 0 && at <= size_ && static_cast<std::int64_t>(ids.size()) <= size_ - at,
        "token_file: read past the end");
  const std::byte* from = ids_ + at * width_;
  if (width_ == 1) {
    widen<std::uint8_t>(from, ids);
  } else if (width_ == 2) {
    widen<std::uint16_t>(from, ids);
  } else {
    widen<std::uint32_t>(from, ids);
  }
}

std::optional<std::int64_t> TokenFile::find_at_least(std::int64_t vocab, std::int64_t limit) const {
  if (width_ < 4 && vocab >= std::int64_t{1} << (8 * width_)) return std::nullopt;
  std::vector<std::int32_t> chunk(1 << 16);
  for (std::int64_t at = 0; at < std::min(limit, size_);) {
    const auto n = std::min<std::int64_t>(static_cast<std::int64_t>(chunk.size()), size_ - at);
    const auto ids = std::span(chunk).first(static_cast<std::size_t>(n));
    read(at, ids);
    std::int32_t largest = 0;
    for (const std::int32_t id : ids) largest = std::max(largest, id);
    if (largest >= vocab) {
      return at +
             (std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id >= vocab; }) -
              ids.begin());
    }
    at += n;
  }
  return std::nullopt;
}

TokenFileWriter::TokenFileWriter(const std::string& path, std::int64_t vocab,
                                 const Sha256Digest& tokenizer)
    : file_(path), path_(path), vocab_(vocab), tokenizer_(tokenizer) {
  check(vocab >= 1 && vocab <= std::numeric_limits<std::int32_t>::max(),
        "token file: expected a vocabulary, got", vocab);
  width_ = vocab <= 1 << 8 ? 1 : vocab <= 1 << 16 ? 2 : 4;
  const Header later{};  // written by commit()
  file_.append(std::as_bytes(std::span(&later, 1)));
}

void TokenFileWriter::append(std::span<const std::int32_t> ids) {
  packed_.resize(ids.size() * static_cast<std::size_t>(width_));
  std::byte* to = packed_.data();
  for (const std::int32_t id : ids) {
    check(id >= 0 && id < vocab_, "token file: expected an id below", vocab_, "got", id);
    largest_ = std::max(largest_, id);
    // Little-endian: the low bytes come first.
    std::memcpy(to, &id, static_cast<std::size_t>(width_));
    to += width_;
  }
  file_.append(packed_);
  count_ += ids.size();
}

void TokenFileWriter::commit() {
  check(count_ > 0, (path_ + ": no tokens to write").c_str());
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.version = kVersion;
  header.width = static_cast<std::uint32_t>(width_);
  header.count = count_;
  header.vocab = static_cast<std::uint32_t>(vocab_);
  header.largest = static_cast<std::uint32_t>(largest_);
  header.tokenizer = tokenizer_;
  file_.overwrite(0, std::as_bytes(std::span(&header, 1)));
  file_.commit();
}

}  // namespace sherd
