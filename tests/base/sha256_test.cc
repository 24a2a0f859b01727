#include "base/sha256.h"

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("the digests of FIPS 180-4 and its validation suite") {
  CHECK(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(std::string(1'000'000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("any cut into pieces gives the same digest") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t size = 0; size < text.size(); size += 13) {
    for (const std::size_t piece : {1u, 3u, 63u, 64u, 65u}) {
      Sha256 hash;
      for (std::size_t at = 0; at < size; at += piece) {
        hash.update(std::string_view(text).substr(at, std::min(piece, size - at)));
      }
      INFO(size << " bytes in pieces of " << piece);
      REQUIRE(hash.digest() == sha256(std::string_view(text).substr(0, size)));
    }
  }
}

}  // namespace
}  // namespace sherd
