#include "base/text.h"

#include <algorithm>
#include <cstdio>

namespace sherd {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: the swap of neighbours looks two rows back.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  // A word of any length may come from a hostile file; its head is enough to compare.
  word = word.substr(0, 200);
  std::string nearest;
  std::size_t best = SIZE_MAX;
  for (const std::string& k : known) {
    const std::size_t d = edit_distance(word, k);
    if (d < best) {
      best = d;
      nearest = k;
    }
  }
  return nearest;
}

std::string quoted(std::string_view text, std::size_t limit) {
  std::string out = "\"";
  std::size_t at = 0;
  while (at < text.size()) {
    if (at >= limit) {
      out += "…";
      break;
    }
    const CodePoint c = decode_utf8(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (c.length == 0 || c.value < 0x20 || c.value == 0x7f) {
      char hex[8];
      if (byte == '\n') {
        out += "\\n";
      } else if (byte == '\t') {
        out += "\\t";
      } else {
        std::snprintf(hex, sizeof hex, "\\x%02x", byte);
        out += hex;
      }
      ++at;
      continue;
    }
    if (byte == '"' || byte == '\\') out += '\\';
    out += text.substr(at, c.length);
    at += c.length;
  }
  return out + '"';
}

CodePoint decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (at >= text.size()) return {};
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < length) return {};
  std::uint32_t value = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kSmallest[length] || value > 0x10ffff || surrogate) return {};
  return {value, length};
}

std::string encode_utf8(std::uint32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = decode_utf8(text, at);
    if (c.length == 0) return at;
    at += c.length;
  }
  return std::string_view::npos;
}

}  // namespace sherd
