#include "train/tokenizer.h"

#include <random>

#include "base/error.h"
#include "base/text.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

std::unique_ptr<Tokenizer> char_tokenizer(std::string_view text) {
  CharCollector collector;
  collector.add(text);
  return make_char_tokenizer(collector.code_points());
}

TEST_CASE("bytes") {
  const auto t = make_byte_tokenizer();
  CHECK(t->kind() == "byte");
  CHECK(t->vocab_size() == 256);
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const auto ids = t->encode(all);
  REQUIRE(ids.size() == 256);
  for (int i = 0; i < 256; ++i) CHECK(ids[static_cast<std::size_t>(i)] == i);
  CHECK(t->decode(ids) == all);
  CHECK(t->encode("").empty());
  for (const std::int32_t bad : {-1, 256}) {
    CHECK_THROWS_WITH(t->decode(std::span(&bad, 1)), Catch::Contains("ids 0 to 255"));
  }
}

TEST_CASE("characters are numbered in the order of code points") {
  const auto t = char_tokenizer("hello wörld 猫😀\n");
  CHECK(t->vocab_size() == 12);
  CHECK(t->encode("\n hö猫😀") == std::vector<std::int32_t>{0, 1, 4, 9, 10, 11});
  CHECK(t->decode(t->encode("wörld 😀")) == "wörld 😀");
  CHECK(t->encode("").empty());
  CHECK(t->decode({}).empty());
  std::vector<std::int32_t> ids = {7};
  t->encode("h", ids);
  CHECK(ids == std::vector<std::int32_t>{7, 4});  // appended
}

TEST_CASE("an unknown character is named, with its place") {
  const auto t = char_tokenizer("abc");
  CHECK_THROWS_WITH(t->encode("abé"),
                    Catch::StartsWith("unknown character \"é\" (U+00E9) at byte 2 "));
  CHECK_THROWS_WITH(t->encode("\n"),
                    Catch::StartsWith("unknown character \"\\n\" (U+000A) at byte 0 "));
  std::vector<std::int32_t> ids;
  CHECK_THROWS_WITH(t->encode("x", ids, 1000), Catch::Contains("at byte 1000"));
  CHECK_THROWS_WITH(t->encode("ab\xff"), Catch::StartsWith("invalid UTF-8 at byte 2 \"\\xff\""));
  const std::int32_t bad = 3;
  CHECK_THROWS_WITH(t->decode(std::span(&bad, 1)), Catch::Contains("ids 0 to 2"));
}

TEST_CASE("a training text with invalid UTF-8") {
  CharCollector collector;
  CHECK_THROWS_WITH(collector.add("a\xc3", 10), Catch::StartsWith("invalid UTF-8 at byte 11"));
  CHECK_THROWS_WITH(make_char_tokenizer({}), Catch::Contains("at least one"));
}

TEST_CASE("saved and made again") {
  for (const auto& t : {char_tokenizer("a\"\\\n\t\x01 é猫😀"), make_byte_tokenizer()}) {
    const auto back = parse_tokenizer(t->json());
    CHECK(back->kind() == t->kind());
    CHECK(back->vocab_size() == t->vocab_size());
    CHECK(back->json() == t->json());
    CHECK(back->encode("a\n") == t->encode("a\n"));
  }
}

TEST_CASE("a saved tokenizer that is none") {
  for (const char* bad :
       {"", "[]", "{}", "{\"type\": 3}", "{\"type\": \"words\"}", "{\"type\": \"char\"}",
        "{\"type\": \"char\", \"characters\": []}", "{\"type\": \"char\", \"characters\": [\"\"]}",
        "{\"type\": \"char\", \"characters\": [\"ab\"]}",
        "{\"type\": \"char\", \"characters\": [\"b\", \"a\"]}",
        "{\"type\": \"char\", \"characters\": [\"a\", \"a\"]}",
        "{\"type\": \"char\", \"characters\": [1]}",
        "{\"type\": \"char\", \"characters\": \"ab\"}"}) {
    INFO(bad);
    CHECK_THROWS_WITH(parse_tokenizer(bad), Catch::StartsWith("tokenizer: "));
    try {
      parse_tokenizer(bad);
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::io);
    }
  }
}

TEST_CASE("random texts survive, whole or in pieces") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    const int length = static_cast<int>(random() % 200);
    for (int i = 0; i < length; ++i) {
      const std::uint32_t range = random() % 2 == 0 ? 0x80 : 0x110000;
      const std::uint32_t c = random() % range;
      if (c < 0xd800 || c >= 0xe000) text += encode_utf8(c);
    }
    if (text.empty()) continue;
    const auto t = char_tokenizer(text);
    CHECK(t->decode(t->encode(text)) == text);
    std::vector<std::int32_t> pieces;
    CharCollector collector;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view head = head_of(rest, 4 + random() % 9);
      REQUIRE(!head.empty());
      collector.add(head);
      t->encode(head, pieces);
      rest.remove_prefix(head.size());
    }
    CHECK(pieces == t->encode(text));
    CHECK(make_char_tokenizer(collector.code_points())->json() == t->json());
  }
}

TEST_CASE("the head of a text") {
  CHECK(head_of("abc", 3) == "abc");
  CHECK(head_of("abc", 2) == "ab");
  CHECK(head_of("aé", 2) == "a");
  CHECK(head_of("a😀b", 4) == "a");
  CHECK(head_of("a😀b", 5) == "a😀");
  CHECK(head_of(std::string(10, '\x80'), 6).size() == 6);  // no code point to spare
}

}  // namespace
}  // namespace sherd
