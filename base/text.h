// Small functions on text that readers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The element of `known` with the smallest edit distance to `word`; the first of equals; "" if
/// there are none.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

/// "text" in double quotes with control characters escaped, cut to about `limit` bytes; for
/// messages.
std::string quoted(std::string_view text, std::size_t limit = 60);

/// One code point of UTF-8: its value and its length in bytes; length 0 if text[at] starts no valid
/// one.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;
};
CodePoint decode_utf8(std::string_view text, std::size_t at);

/// The UTF-8 bytes of a code point ≤ 0x10FFFF.
std::string encode_utf8(std::uint32_t code_point);

/// The offset of the first byte that is no valid UTF-8; npos if all is.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace sherd
