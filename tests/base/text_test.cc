#include "base/text.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("edit distance") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("setps", "steps") == 1);  // neighbours swapped
  CHECK(edit_distance("lr", "ler") == 1);
  CHECK(edit_distance("abc", "abc") == 0);
}

TEST_CASE("the nearest word") {
  CHECK(nearest_word("beta", {"lr", "betas", "eps"}) == "betas");
  CHECK(nearest_word("x", {"a", "b"}) == "a");
  CHECK(nearest_word("x", {}).empty());
  CHECK(nearest_word(std::string(1 << 20, 'x'), {"a", "b"}) == "a");
}

TEST_CASE("quoted text") {
  CHECK(quoted("plain é") == "\"plain é\"");
  CHECK(quoted("a\"b\\") == "\"a\\\"b\\\\\"");
  CHECK(quoted("a\nb\t\x01\xff\x1b") == "\"a\\nb\\t\\x01\\xff\\x1b\"");
  CHECK(quoted("abcdef", 3) == "\"abc…\"");
  CHECK(quoted("") == "\"\"");
}

TEST_CASE("every code point survives UTF-8") {
  for (std::uint32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const std::string bytes = encode_utf8(c);
    const CodePoint back = decode_utf8(bytes, 0);
    if (back.value == c && back.length == bytes.size()) continue;
    INFO(c);
    REQUIRE(back.value == c);
  }
}

TEST_CASE("invalid UTF-8 is found") {
  using namespace std::string_literals;
  CHECK(find_invalid_utf8("") == std::string::npos);
  CHECK(find_invalid_utf8("aé猫😀"s) == std::string::npos);
  for (const std::string& bad :
       {"\x80"s, "\xc3"s, "\xc3("s, "\xc0\x80"s, "\xe0\x80\x80"s, "\xed\xa0\x80"s,
        "\xf0\x80\x80\x80"s, "\xf4\x90\x80\x80"s, "\xf8\x88\x80\x80\x80"s, "\xff"s, "\xe7\x8c"s}) {
    INFO(quoted(bad));
    CHECK(find_invalid_utf8(bad) == 0);
    CHECK(find_invalid_utf8("aé" + bad) == 3);
  }
  CHECK(decode_utf8("a", 1).length == 0);
}

}  // namespace
}  // namespace sherd
