#include "train/token_file.h"

#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"
#include "train/token_source.h"

namespace sherd {
namespace {

using test::TempFolder;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t count,
                 const std::string& ids) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header) + ids;
}

std::vector<std::int32_t> all_of(const TokenFile& file) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(file.size()));
  file.read(0, ids);
  return ids;
}

void write_ours(const std::string& path, std::int64_t vocab, const std::vector<std::int32_t>& ids,
                const Sha256Digest& tokenizer = {}) {
  TokenFileWriter writer(path, vocab, tokenizer);
  writer.append(ids);
  writer.commit();
}

std::string error_of(const TempFolder& folder, const std::string& content) {
  write_file(folder / "f.bin", content);
  try {
    TokenFile::open(folder / "f.bin");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
    const std::string what = e.what();
    REQUIRE(what.starts_with(folder / "f.bin: "));
    return what.substr((folder / "f.bin: ").size());
  }
  return "no error";
}

TEST_CASE("our own files") {
  const TempFolder folder;
  const std::string path = folder / "t.bin";
  struct Case {
    std::int64_t vocab;
    int width;
  };
  for (const Case c : {Case{1, 1}, Case{256, 1}, Case{257, 2}, Case{65536, 2}, Case{65537, 4},
                       Case{INT32_MAX, 4}}) {
    const auto last = static_cast<std::int32_t>(c.vocab - 1);
    const std::vector<std::int32_t> ids = {0, last, last / 2, 0, last};
    write_ours(path, c.vocab, ids, sha256("t"));
    const TokenFile file = TokenFile::open(path);
    CHECK(file.width() == c.width);
    CHECK(file.vocab() == c.vocab);
    CHECK(file.tokenizer() == sha256("t"));
    CHECK(all_of(file) == ids);
    std::vector<std::int32_t> middle(2);
    file.read(1, middle);
    CHECK(middle == std::vector<std::int32_t>{last, last / 2});
    CHECK_THROWS_AS(file.read(4, middle), Error);
    CHECK_THROWS_AS(file.read(-1, middle), Error);
    CHECK_NOTHROW(file.read(5, {}));
    CHECK_FALSE(file.find_at_least(c.vocab, 100));
    if (c.vocab > 1) CHECK(file.find_at_least(last, 100) == 1);
  }
  write_ours(path, 10, {1});
  CHECK_FALSE(TokenFile::open(path).tokenizer());
  CHECK(read_file(path).size() ==
        65);  // the header that the comment in token_file.h describes, and one id
  CHECK(read_file(path).substr(0, 8) == "SHERDTOK");
}

TEST_CASE("what the writer refuses") {
  const TempFolder folder;
  TokenFileWriter writer(folder / "t.bin", 10);
  for (const std::int32_t bad : {-1, 10}) {
    CHECK_THROWS_WITH(writer.append(std::span(&bad, 1)),
                      Catch::Contains("expected an id below 10"));
  }
  CHECK_THROWS_WITH(writer.commit(), Catch::Contains("no tokens"));
  CHECK_THROWS_AS(TokenFileWriter(folder / "u.bin", 0), Error);
  CHECK(expand_glob(folder / "[tu].bin").empty());
}

TEST_CASE("llm.c's files") {
  const TempFolder folder;
  const std::string path = folder / "t.bin";
  write_file(path, llmc(20240520, 1, 3, bytes_of<std::uint16_t>({1, 65535, 3})));
  CHECK(all_of(TokenFile::open(path)) == std::vector<std::int32_t>{1, 65535, 3});
  CHECK_FALSE(TokenFile::open(path).vocab());
  write_file(path, llmc(20240801, 7, 2, bytes_of<std::uint32_t>({128000, 0xffffffff})));
  CHECK(all_of(TokenFile::open(path)) == std::vector<std::int32_t>{128000, INT32_MAX});
}

TEST_CASE("any file as bytes") {
  const TempFolder folder;
  write_file(folder / "t.txt", "a\xff\n");
  const TokenFile file = TokenFile::of_bytes(folder / "t.txt");
  CHECK(all_of(file) == std::vector<std::int32_t>{'a', 255, '\n'});
  CHECK(file.vocab() == 256);
  write_file(folder / "empty", "");
  CHECK_THROWS_WITH(TokenFile::of_bytes(folder / "empty"), Catch::Contains("empty: is empty"));
}

TEST_CASE("hostile and truncated files are refused, each for its reason") {
  const TempFolder folder;
  write_ours(folder / "good.bin", 1000, {1, 2, 3});
  const std::string good = read_file(folder / "good.bin");
  const auto patched = [&](std::size_t at, auto value) {
    std::string out = good;
    std::memcpy(out.data() + at, &value, sizeof value);
    return out;
  };
  CHECK_THAT(error_of(folder, ""), Catch::StartsWith("is empty"));
  CHECK_THAT(error_of(folder, "hello world"),
             Catch::StartsWith("is no token file: it starts with \"hello wo\""));
  CHECK_THAT(error_of(folder, "abc"), Catch::StartsWith("is no token file"));
  for (std::size_t size = 8; size < 64; ++size) {
    CHECK_THAT(error_of(folder, good.substr(0, size)),
               Catch::StartsWith("is truncated inside its header"));
  }
  CHECK_THAT(
      error_of(folder, good.substr(0, 69)),
      Catch::StartsWith("is truncated: its header says 3 tokens of 2 bytes, but 5 bytes follow"));
  CHECK_THAT(error_of(folder, good + "x"),
             Catch::StartsWith("has 1 bytes after the last of its 3 tokens"));
  CHECK_THAT(error_of(folder, patched(8, std::uint32_t{2})), Catch::StartsWith("has version 2"));
  CHECK_THAT(error_of(folder, patched(12, std::uint32_t{3})),
             Catch::StartsWith("has tokens of 3 bytes"));
  CHECK_THAT(error_of(folder, patched(12, std::uint32_t{0})),
             Catch::StartsWith("has tokens of 0 bytes"));
  CHECK_THAT(error_of(folder, patched(16, std::uint64_t{0})), Catch::StartsWith("has no tokens"));
  // A count whose size in bytes wraps around to the right one.
  CHECK_THAT(error_of(folder, patched(16, (std::uint64_t{1} << 63) + 3)),
             Catch::StartsWith("is truncated"));
  CHECK_THAT(error_of(folder, patched(24, std::uint32_t{0})),
             Catch::StartsWith("has a largest token of 3 in"));
  CHECK_THAT(error_of(folder, patched(24, std::uint32_t{3})),
             Catch::StartsWith("has a largest token of 3 in"));
  CHECK_THAT(error_of(folder, patched(24, std::uint32_t{0xffffffff})),
             Catch::StartsWith("has a largest token"));

  CHECK_THAT(error_of(folder, llmc(20240520, 1, 0, "")), Catch::StartsWith("has no tokens"));
  CHECK_THAT(error_of(folder, llmc(20240520, 1, -1, "")),
             Catch::StartsWith("says that it has -1 tokens"));
  CHECK_THAT(error_of(folder, llmc(20240520, 2, 1, "ab")), Catch::StartsWith("has version 2"));
  CHECK_THAT(error_of(folder, llmc(20240520, 1, 2, "abc")), Catch::StartsWith("is truncated"));
  CHECK_THAT(error_of(folder, llmc(20240520, 1, 1, "abc")), Catch::StartsWith("has 1 bytes after"));
  CHECK_THAT(error_of(folder, llmc(20240801, 7, 1, "abc")), Catch::StartsWith("is truncated"));
  CHECK_THAT(error_of(folder, llmc(20240520, 1, 1, "ab").substr(0, 1023)),
             Catch::StartsWith("is truncated inside its header"));
  CHECK_THAT(error_of(folder, llmc(20240522, 1, 1, "ab")), Catch::StartsWith("is no token file"));
  CHECK_THROWS_WITH(TokenFile::open(folder / "none.bin"),
                    Catch::Contains("none.bin: cannot open: No such file"));
}

TEST_CASE("a source joins files, and a part of it is a source") {
  const TempFolder folder;
  std::vector<TokenFile> files;
  std::vector<std::int32_t> all;
  int n = 0;
  for (const std::int64_t vocab : {100, 1000, 100000}) {
    const std::string path = folder / std::to_string(vocab);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 3 + n; ++i) ids.push_back(10 * n + i);
    write_ours(path, vocab, ids);
    files.push_back(TokenFile::open(path));
    all.insert(all.end(), ids.begin(), ids.end());
    ++n;
  }
  const TokenSource source(std::move(files));
  REQUIRE(source.size() == static_cast<std::int64_t>(all.size()));
  const std::int64_t size = source.size();
  for (std::int64_t begin = 0; begin <= size; ++begin) {
    for (std::int64_t end = begin; end <= size; ++end) {
      std::vector<std::int32_t> got(static_cast<std::size_t>(end - begin));
      const std::vector<std::int32_t> want(all.begin() + begin, all.begin() + end);
      source.read(begin, got);
      REQUIRE(got == want);
      const TokenSource part = source.part(begin, end);
      CHECK(part.size() == end - begin);
      std::fill(got.begin(), got.end(), -1);
      part.read(0, got);
      REQUIRE(got == want);
      std::int32_t one = 0;
      CHECK_THROWS_AS(part.read(part.size(), std::span(&one, 1)), Error);
      CHECK_THROWS_AS(part.read(-1, std::span(&one, 1)), Error);
    }
  }
  CHECK_THROWS_AS(source.part(0, size + 1), Error);
  CHECK_THROWS_AS(source.part(-1, size), Error);
  CHECK_THROWS_AS(source.part(2, 1), Error);
  CHECK(source.part(2, 6).part(1, 3).size() == 2);
  CHECK(TokenSource().empty());
}

TEST_CASE("a file larger than memory") {
  const TempFolder folder;
  const std::string path = folder / "t.bin";
  write_ours(path, 1000, {1});
  // A hole stands for 100 GB of tokens; what is read lies at both ends.
  constexpr std::int64_t kCount = 50'000'000'000;
  std::FILE* f = std::fopen(path.c_str(), "r+b");
  REQUIRE(f != nullptr);
  const std::int64_t count = kCount;
  const std::uint16_t last = 999;
  std::fseek(f, 16, SEEK_SET);
  std::fwrite(&count, sizeof count, 1, f);
  std::fseek(f, 64 + 2 * (kCount - 1), SEEK_SET);
  std::fwrite(&last, sizeof last, 1, f);
  REQUIRE(std::fclose(f) == 0);
  std::vector<TokenFile> files;
  files.push_back(TokenFile::open(path));
  TokenSource source(std::move(files));
  REQUIRE(source.size() == kCount);
  source.check_vocab(999, 1 << 20);
  std::vector<std::int32_t> ids(5);
  source.read(0, ids);
  CHECK(ids == std::vector<std::int32_t>{1, 0, 0, 0, 0});
  CHECK_THROWS_WITH(source.read(kCount - 5, ids),
                    Catch::Contains("token 49999999999 is 999, not below the vocabulary of 999"));
  source.check_vocab(1000, 1 << 20);
  source.read(kCount - 5, ids);
  CHECK(ids == std::vector<std::int32_t>{0, 0, 0, 0, 999});
}

TEST_CASE("an id outside the vocabulary is refused with file and position") {
  const TempFolder folder;
  write_file(folder / "a.bin", llmc(20240520, 1, 2, bytes_of<std::uint16_t>({1, 2})));
  write_file(folder / "b.bin", llmc(20240520, 1, 4, bytes_of<std::uint16_t>({1, 2, 3, 50257})));
  std::vector<TokenFile> files;
  files.push_back(TokenFile::open(folder / "a.bin"));
  files.push_back(TokenFile::open(folder / "b.bin"));
  TokenSource source(std::move(files));
  const std::string want =
      folder / "b.bin" + ": token 3 is 50257, not below the vocabulary of 50257";
  CHECK_NOTHROW(source.check_vocab(50258));
  CHECK_THROWS_WITH(source.check_vocab(50257), want);
  // Beyond what was looked at in advance, it is found when it is read.
  CHECK_NOTHROW(source.check_vocab(50257, 0));
  std::vector<std::int32_t> ids(6);
  CHECK_THROWS_WITH(source.read(0, ids), want);
  CHECK_THROWS_WITH(source.part(1, 6).read(0, std::span(ids).first(5)), want);
  CHECK_NOTHROW(source.read(0, std::span(ids).first(5)));
}

}  // namespace
}  // namespace sherd
