#include "train/tokenized_text.h"

#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"

namespace sherd {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// Changes when the file does.
std::string identity(const std::string& path) {
  const FileStamp stamp = file_stamp(path);
  return std::filesystem::absolute(path).string() + '\0' + std::to_string(stamp.size) + '\0' +
         std::to_string(stamp.modified_ns) + '\0';
}

MappedFile open_text(const std::string& path) {
  MappedFile file(path);
  if (file.bytes().empty()) fail_as(ErrorKind::io, (path + ": is empty").c_str());
  return file;
}

/// body(piece, offset) for each piece of the text, none of which cuts a code point.
template <class F>
void for_each_piece(std::string_view text, const F& body) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view piece = head_of(text.substr(at), kPieceBytes);
    body(piece, at);
    at += piece.size();
  }
}

/// What an earlier run left; nothing if that cannot be used (another version's, or cut short by a
/// full disk).
template <class F>
auto cached(const F& load) -> std::optional<decltype(load())> {
  try {
    return load();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::unique_ptr<Tokenizer> char_tokenizer_of(const std::vector<std::string>& paths,
                                             const std::string& cache) {
  std::string key = "characters 1\n";
  for (const auto& path : paths) key += identity(path);
  const std::string kept = cache + "/characters-" + hex(sha256(key)).substr(0, 32) + ".json";
  if (auto found =
          cached([&] { return parse_tokenizer(read_file(kept, std::size_t{64} << 20)); })) {
    return std::move(*found);
  }
  CharCollector collector;
  for (const auto& path : paths) {
    const MappedFile file = open_text(path);
    const Context in(path);
    for_each_piece(file.text(),
                   [&](std::string_view piece, std::size_t at) { collector.add(piece, at); });
  }
  auto tokenizer = make_char_tokenizer(collector.code_points());
  write_file(kept, tokenizer->json());
  return tokenizer;
}

TokenFile tokenized(const std::string& path, const Tokenizer& tokenizer, const std::string& cache) {
  if (tokenizer.kind() == "byte") return TokenFile::of_bytes(path);
  const Sha256Digest vocabulary = sha256(tokenizer.json());
  const std::string key = "tokens 1\n" + identity(path) + hex(vocabulary);
  const std::string kept = cache + "/tokens-" + hex(sha256(key)).substr(0, 32) + ".bin";
  if (auto found = cached([&] { return TokenFile::open(kept); })) return std::move(*found);

  const MappedFile file = open_text(path);
  const Context in(path);
  check_disk_space(kept, file.bytes().size());
  TokenFileWriter writer(kept, tokenizer.vocab_size(), vocabulary);
  std::vector<std::int32_t> ids;
  for_each_piece(file.text(), [&](std::string_view piece, std::size_t at) {
    ids.clear();
    tokenizer.encode(piece, ids, at);
    writer.append(ids);
  });
  writer.commit();
  return TokenFile::open(kept);
}

}  // namespace sherd
