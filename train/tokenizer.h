// Text to token ids and back. A tokenizer is saved with the run as JSON: a checkpoint can speak.
// Invariant: decode(encode(text)) == text for every text that encode accepts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// Thread-safe once made.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// "byte", "char"
  virtual std::string kind() const = 0;
  /// Ids are 0 .. vocab_size() - 1.
  virtual std::int64_t vocab_size() const = 0;
  /// Appends the ids of `text` to `ids`. `offset` is where the text starts in its file, for errors.
  /// throws usage naming the character that the vocabulary lacks, and where it is
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids,
                      std::uint64_t offset = 0) const = 0;
  /// throws usage on an id outside the vocabulary
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  /// All that is needed to make it again, with parse_tokenizer.
  virtual std::string json() const = 0;

  std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<std::int32_t> ids;
    encode(text, ids);
    return ids;
  }
};

/// One id a byte: 256 ids, no text is refused.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

/// One id a UTF-8 code point; ids follow the order of code points.
/// throws usage if there are none, one twice or out of order, or one that is no code point
std::unique_ptr<Tokenizer> make_char_tokenizer(const std::vector<std::uint32_t>& code_points);

/// The code points of a training text, which may come in pieces.
class CharCollector {
 public:
  CharCollector();
  /// A piece must end at a code point's end. `offset` as in encode.
  /// throws usage on invalid UTF-8
  void add(std::string_view text, std::uint64_t offset = 0);
  /// Sorted.
  std::vector<std::uint32_t> code_points() const;

 private:
  std::vector<std::uint64_t> seen_;  // a bit a code point
};

/// What json() gave; throws io on anything else.
std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view json);

/// The longest head of `text` of at most `limit` bytes that does not cut a code point (of invalid
/// text: `limit` bytes).
std::string_view head_of(std::string_view text, std::size_t limit);

}  // namespace sherd
