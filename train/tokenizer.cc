#include "train/tokenizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace sherd {
namespace {

constexpr std::uint32_t kCodePoints = 0x110000;

/// "é" (U+00E9)
std::string name_of(std::uint32_t code_point) {
  char number[16];
  std::snprintf(number, sizeof number, "U+%04X", code_point);
  return quoted(encode_utf8(code_point)) + " (" + number + ")";
}

bool is_code_point(std::int64_t value) {
  return value >= 0 && value < kCodePoints && !(value >= 0xd800 && value < 0xe000);
}

[[noreturn]] void fail_invalid(std::string_view text, std::size_t at, std::uint64_t offset) {
  fail("invalid UTF-8 at byte", offset + at, quoted(text.substr(at, 1)),
       "- data.tokenizer = \"byte\" takes any bytes");
}

class ByteTokenizer final : public Tokenizer {
 public:
  using Tokenizer::encode;
  std::string kind() const override { return "byte"; }
  std::int64_t vocab_size() const override { return 256; }

  void encode(std::string_view text, std::vector<std::int32_t>& ids, std::uint64_t) const override {
    ids.reserve(ids.size() + text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      check(id >= 0 && id < 256, "a byte tokenizer has ids 0 to 255, got", id);
      text += static_cast<char>(id);
    }
    return text;
  }

  std::string json() const override { return Json(Json::Object{{"type", "byte"}}).text(0); }
};

class CharTokenizer final : public Tokenizer {
 public:
  using Tokenizer::encode;
  explicit CharTokenizer(std::vector<std::uint32_t> code_points)
      : code_points_(std::move(code_points)) {
    ascii_.fill(-1);
    for (std::size_t i = 0; i < code_points_.size(); ++i) {
      if (code_points_[i] < 128) ascii_[code_points_[i]] = static_cast<std::int32_t>(i);
    }
  }

  std::string kind() const override { return "char"; }
  std::int64_t vocab_size() const override {
    return static_cast<std::int64_t>(code_points_.size());
  }

  void encode(std::string_view text, std::vector<std::int32_t>& ids,
              std::uint64_t offset) const override {
    ids.reserve(ids.size() + text.size());
    for (std::size_t at = 0; at < text.size();) {
      const auto byte = static_cast<unsigned char>(text[at]);
      const CodePoint c = byte < 128 ? CodePoint{byte, 1} : decode_utf8(text, at);
      if (c.length == 0) fail_invalid(text, at, offset);
      const std::int32_t id = id_of(c.value);
      if (id < 0) {
        fail("unknown character", name_of(c.value), "at byte", offset + at,
             "- the vocabulary has the", vocab_size(), "characters of its training text");
      }
      ids.push_back(id);
      at += c.length;
    }
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      check(id >= 0 && id < vocab_size(), "the vocabulary has ids 0 to", vocab_size() - 1, "got",
            id);
      text += encode_utf8(code_points_[static_cast<std::size_t>(id)]);
    }
    return text;
  }

  std::string json() const override {
    Json::Array characters;
    for (const std::uint32_t c : code_points_) characters.emplace_back(encode_utf8(c));
    return Json(Json::Object{{"type", "char"}, {"characters", Json(std::move(characters))}})
        .text(0);
  }

 private:
  std::int32_t id_of(std::uint32_t code_point) const {
    if (code_point < 128) return ascii_[code_point];
    const auto found = std::lower_bound(code_points_.begin(), code_points_.end(), code_point);
    if (found == code_points_.end() || *found != code_point) return -1;
    return static_cast<std::int32_t>(found - code_points_.begin());
  }

  std::vector<std::uint32_t> code_points_;
  std::array<std::int32_t, 128> ascii_{};  // nearly all lookups
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> make_char_tokenizer(const std::vector<std::uint32_t>& code_points) {
  check(!code_points.empty(), "a char tokenizer needs at least one character");
  for (std::size_t i = 0; i < code_points.size(); ++i) {
    check(is_code_point(code_points[i]), "no code point:", code_points[i]);
    check(i == 0 || code_points[i - 1] < code_points[i],
          "characters must be sorted and each there once; got", name_of(code_points[i]),
          "out of order");
  }
  return std::make_unique<CharTokenizer>(code_points);
}

CharCollector::CharCollector() : seen_(kCodePoints / 64) {}

void CharCollector::add(std::string_view text, std::uint64_t offset) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (c.length == 0) fail_invalid(text, at, offset);
    seen_[c.value / 64] |= std::uint64_t{1} << (c.value % 64);
    at += c.length;
  }
}

std::vector<std::uint32_t> CharCollector::code_points() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t word = 0; word < seen_.size(); ++word) {
    for (std::uint64_t bits = seen_[word]; bits != 0; bits &= bits - 1) {
      out.push_back(word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
  return out;
}

std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view text) {
  const Context in("tokenizer");
  const Json json = Json::parse(text);
  const std::string& type = json.at("type").string();
  if (type == "byte") return make_byte_tokenizer();
  if (type != "char") fail_as(ErrorKind::io, "expected the type byte or char, got", quoted(type));
  std::vector<std::uint32_t> code_points;
  for (const Json& item : json.at("characters").array()) {
    const std::string& character = item.string();
    const CodePoint c = decode_utf8(character, 0);
    if (c.length == 0 || c.length != character.size()) {
      fail_as(ErrorKind::io, "expected one character, got", quoted(character));
    }
    code_points.push_back(c.value);
  }
  try {
    return make_char_tokenizer(code_points);
  } catch (const Error& e) {
    throw Error(ErrorKind::io, e.what());  // the file's fault, not the user's
  }
}

std::string_view head_of(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  for (std::size_t end = limit; end > 0 && limit - end < 4; --end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80) return text.substr(0, end);
  }
  return text.substr(0, limit);
}

}  // namespace sherd
