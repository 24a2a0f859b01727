#include "train/dataset.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"
#include "train/bundled_text.h"
#include "train/cache_folder.h"

namespace sherd {
namespace {

using test::TempFolder;

std::vector<std::int32_t> all_of(const TokenSource& source) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(source.size()));
  source.read(0, ids);
  return ids;
}

std::vector<std::string> names_in(const std::string& folder) { return expand_glob(folder + "/*"); }

/// A folder of data beside a cache, and a section that names files of it.
struct Fixture {
  TempFolder folder;
  DataSection data;
  DatasetOptions options;

  Fixture() {
    options.context = 4;
    options.cache = folder / "cache";
  }
  std::string file(const std::string& name, const std::string& content) const {
    write_file(folder / name, content);
    return folder / name;
  }
  std::string tokens(const std::string& name, std::int64_t vocab,
                     const std::vector<std::int32_t>& ids,
                     const Sha256Digest& tokenizer = {}) const {
    TokenFileWriter writer(folder / name, vocab, tokenizer);
    writer.append(ids);
    writer.commit();
    return folder / name;
  }
  Dataset open() const { return open_dataset(data, options); }
  std::string error() const {
    try {
      open();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
};

TEST_CASE("texts as bytes need no preparation") {
  Fixture f;
  f.file("a.txt", "0123456789");
  f.file("b.txt", "abcdefghij");
  f.data.files = {f.folder / "*.txt"};
  f.data.val_fraction = 0.25;
  const Dataset d = f.open();
  CHECK(d.vocab == 256);
  CHECK(d.tokenizer->kind() == "byte");
  CHECK(d.tokenizer->decode(all_of(d.train)) == "0123456789abcde");
  CHECK(d.tokenizer->decode(all_of(d.validation)) == "fghij");
  CHECK(names_in(f.options.cache).empty());
}

TEST_CASE("the last share is held out") {
  Fixture f;
  f.data.files = {f.file("a.txt", std::string(100, 'x') + "0123456789")};
  for (const double fraction : {0.1, 0.25, 0.5}) {
    f.data.val_fraction = fraction;
    const Dataset d = f.open();
    CHECK(d.train.size() == static_cast<std::int64_t>((1 - fraction) * 110));
    CHECK(d.train.size() + d.validation.size() == 110);
    CHECK(d.tokenizer->decode(all_of(d.train)) + d.tokenizer->decode(all_of(d.validation)) ==
          read_file(f.data.files[0]));
  }
  f.data.val_fraction = 0;
  CHECK(f.open().validation.empty());
  CHECK(f.open().train.size() == 110);
}

TEST_CASE("validation files") {
  Fixture f;
  f.data.files = {f.file("a.txt", "0123456789")};
  f.data.val_files = {f.file("v.txt", "98765")};
  const Dataset d = f.open();
  CHECK(d.train.size() == 10);
  CHECK(d.tokenizer->decode(all_of(d.validation)) == "98765");
  f.data.tokenizer = "char";
  f.file("v.txt", "987x5");
  CHECK_THAT(f.error(), Catch::Contains("v.txt: unknown character \"x\" (U+0078) at byte 3"));
}

TEST_CASE("characters are prepared once") {
  Fixture f;
  f.data.tokenizer = "char";
  f.data.files = {f.file("a.txt", "hello wörld, "), f.file("b.txt", "grüße!\n")};
  f.data.val_fraction = 0;
  const Dataset d = f.open();
  CHECK(d.vocab == 15);
  CHECK(d.tokenizer->vocab_size() == 15);
  CHECK(d.tokenizer->decode(all_of(d.train)) == "hello wörld, grüße!\n");
  const auto kept = names_in(f.options.cache);
  CHECK(kept.size() == 3);  // the characters, and two token files
  const FileStamp before = file_stamp(kept[1]);
  CHECK(all_of(f.open().train) == all_of(d.train));
  CHECK(names_in(f.options.cache) == kept);
  CHECK(file_stamp(kept[1]) == before);
  // A file that was cut short, as by a full disk, is made again.
  for (const auto& path : kept) {
    const std::string content = read_file(path);
    write_file(path, content.substr(0, content.size() - 3));
  }
  CHECK(all_of(f.open().train) == all_of(d.train));
  // A changed text is another text.
  f.file("b.txt", "neuer Text\n");
  CHECK(f.open().tokenizer->decode(all_of(f.open().train)) == "hello wörld, neuer Text\n");
}

TEST_CASE("a text longer than a piece keeps its characters whole") {
  Fixture f;
  f.data.tokenizer = "char";
  std::string text = "a";
  while (text.size() < (3 << 20)) text += "é猫";
  f.data.files = {f.file("a.txt", text)};
  f.data.val_fraction = 0;
  const Dataset d = f.open();
  CHECK(d.vocab == 3);
  CHECK(d.tokenizer->decode(all_of(d.train)) == text);
}

TEST_CASE("a resumed run keeps its vocabulary") {
  Fixture f;
  f.data.tokenizer = "char";
  f.data.files = {f.file("a.txt", "abcdefgh")};
  f.data.val_fraction = 0;
  const Dataset d = f.open();
  f.options.saved = d.tokenizer;
  CHECK(f.open().tokenizer == d.tokenizer);
  f.file("a.txt", "hgfedc");  // fewer characters, the same ids
  CHECK(f.open().vocab == 8);
  CHECK(all_of(f.open().train) == std::vector<std::int32_t>{7, 6, 5, 4, 3, 2});
  f.file("a.txt", "abcxyz");
  CHECK_THAT(f.error(), Catch::Contains("a.txt: unknown character \"x\" (U+0078) at byte 3"));
  f.data.tokenizer = "byte";
  CHECK_THAT(f.error(), Catch::Contains("the run was trained with the tokenizer char, not byte"));
}

TEST_CASE("token files") {
  Fixture f;
  f.data.files = {f.tokens("a.bin", 500, {1, 2, 3, 499, 5, 6})};
  f.data.val_fraction = 0;
  CHECK(f.open().vocab == 500);
  CHECK(f.open().tokenizer == nullptr);
  CHECK(all_of(f.open().train) == std::vector<std::int32_t>{1, 2, 3, 499, 5, 6});
  f.options.vocab = 512;
  CHECK(f.open().vocab == 512);
  f.options.vocab = 499;
  CHECK_THAT(f.error(),
             Catch::StartsWith("model.vocab: 499 is less than the vocabulary of the data, 500"));
  f.options.vocab.reset();
  f.data.files.push_back(f.tokens("b.bin", 600, {1}));
  CHECK_THAT(f.error(),
             Catch::Contains("b.bin: its vocabulary has 600 tokens, those before it 500"));
  f.data.files.push_back(f.file("c.txt", "text"));
  CHECK_THAT(f.error(), Catch::Contains("cannot be mixed"));
}

TEST_CASE("token files of llm.c need model.vocab") {
  Fixture f;
  std::vector<std::int32_t> header(256);
  header[0] = 20240520, header[1] = 1, header[2] = 6;
  const std::vector<std::uint16_t> ids = {1, 2, 3, 300, 5, 6};
  f.data.files = {f.file("a.bin", std::string(reinterpret_cast<const char*>(header.data()), 1024) +
                                      std::string(reinterpret_cast<const char*>(ids.data()), 12))};
  f.data.val_fraction = 0;
  CHECK_THAT(f.error(), Catch::StartsWith("model.vocab: must be set"));
  f.options.vocab = 301;
  CHECK(f.open().train.size() == 6);
  f.options.vocab = 300;
  CHECK_THAT(f.error(), Catch::Contains("a.bin: token 3 is 300, not below the vocabulary of 300"));
}

TEST_CASE("token files of another vocabulary than the tokenizer's") {
  Fixture f;
  const auto byte = make_byte_tokenizer();
  f.data.val_fraction = 0;
  f.data.tokenizer = "byte";
  f.data.files = {f.tokens("a.bin", 256, {1, 2, 3, 4, 5}, sha256(byte->json()))};
  CHECK(f.open().tokenizer->kind() == "byte");
  f.data.files = {f.tokens("a.bin", 256, {1, 2, 3, 4, 5}, sha256("another"))};
  CHECK_THAT(f.error(),
             Catch::Contains("a.bin: was written with another vocabulary than the tokenizer byte"));
  f.data.tokenizer = "char";
  CHECK_THAT(f.error(), Catch::StartsWith("data.tokenizer: token files bring no vocabulary"));
}

TEST_CASE("what cannot be trained on is refused with its reason") {
  Fixture f;
  CHECK_THAT(f.error(), Catch::StartsWith("data.files: expected at least one file"));
  f.data.files = {f.folder / "none-*.txt"};
  CHECK_THAT(f.error(),
             Catch::StartsWith("data.files: \"" + f.folder / "none-*.txt" + "\" names no file"));
  f.data.files = {f.folder.path()};
  CHECK_THAT(f.error(), Catch::Contains("Is a directory"));
  for (const char* tokenizer : {"byte", "char"}) {
    f.data.tokenizer = tokenizer;
    f.data.files = {f.file("empty.txt", "")};
    CHECK_THAT(f.error(), Catch::Contains("empty.txt: is empty"));
  }
  f.data.files = {f.file("a.txt", "1234")};
  CHECK_THAT(
      f.error(),
      Catch::StartsWith("data.files: 4 tokens are too few; a sample needs model.context + 1 = 5"));
  f.data.files = {f.file("a.txt", "123456789")};
  CHECK_THAT(f.error(),
             Catch::StartsWith("data.val_fraction = 0.1 of data.files: 1 tokens are too few"));
  f.data.val_fraction = 0.9;
  CHECK_THAT(f.error(),
             Catch::StartsWith("data.files without data.val_fraction = 0.9: 0 tokens are too few"));
  f.data.val_fraction.reset();
  f.data.val_files = {f.file("v.txt", "12")};
  CHECK_THAT(f.error(), Catch::StartsWith("data.val_files: 2 tokens are too few"));
  f.data.val_files = {f.folder / "none"};
  CHECK_THAT(f.error(), Catch::StartsWith("data.val_files: "));
  f.data.val_files.clear();
  f.data.val_fraction = 0;
  f.data.tokenizer = "char";
  f.data.files = {f.file("a.txt", "abcd\xff")};
  CHECK_THAT(f.error(), Catch::Contains("a.txt: invalid UTF-8 at byte 4"));
  f.data.files = {f.file("a.txt", "abcdefgh")};
  f.options.vocab = 7;
  CHECK_THAT(f.error(),
             Catch::StartsWith("model.vocab: 7 is less than the vocabulary of the data, 8"));
  f.data.tokenizer = "bpe:x";
  CHECK_THAT(f.error(), Catch::Contains("there is no tokenizer \"bpe:x\""));
}

TEST_CASE("the bundled text") {
  Fixture f;
  f.data.dataset = "kjv";
  const Dataset d = f.open();
  CHECK(d.train.size() + d.validation.size() == 4404412);
  std::vector<std::int32_t> head(60);
  d.train.read(0, head);
  CHECK(d.tokenizer->decode(head) ==
        "Ge1:1 In the beginning God created the heaven and the earth.");
  const auto kept = names_in(f.options.cache);
  REQUIRE(kept.size() == 1);
  // Damage is seen and repaired.
  const FileStamp before = file_stamp(kept[0]);
  f.open();
  CHECK(file_stamp(kept[0]) == before);
  std::string content = read_file(kept[0]);
  content[1000] ^= 1;
  write_file(kept[0], content);
  std::vector<std::int32_t> ids(2000);
  f.open().train.read(0, ids);
  content[1000] ^= 1;
  CHECK(d.tokenizer->decode(ids) == content.substr(0, 2000));
}

TEST_CASE("a bundled text whose program is missing, or prints another text") {
  const TempFolder folder;
  BundledText text = bundled_text("kjv");
  text.command = {"no-such-program-here"};
  CHECK_THROWS_WITH(
      prepare_bundled_text(text, folder.path()),
      Catch::Contains("no-such-program-here, which cannot be started (No such file or directory); "
                      "install it: apt-get install --no-install-recommends bible-kjv"));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"echo", "short"}, {"false"}, {"yes"}, {"cat"}}) {
    text.command = command;
    CHECK_THROWS_WITH(prepare_bundled_text(text, folder.path()),
                      Catch::Contains("dataset kjv: expected 4404412 bytes with SHA-256 cd45f0c9"));
  }
  CHECK(names_in(folder.path()).empty());
  CHECK_THROWS_WITH(bundled_text("moby"), "there is no dataset \"moby\"; available: kjv");
}

TEST_CASE("the cache folder") {
  const TempFolder folder;
  const std::string x = folder / "xdg", home = folder / "home", temporary = folder.path();
  const std::string last = temporary + "/sherd-" + std::to_string(::getuid());
  CHECK(choose_cache_folder(x, home, temporary) == x + "/sherd");
  CHECK(choose_cache_folder("", home, temporary) == home + "/.cache/sherd");
  CHECK(choose_cache_folder("relative", home, temporary) == home + "/.cache/sherd");
  CHECK(choose_cache_folder("", "", temporary) == last);
  write_file(folder / "file", "");
  CHECK(choose_cache_folder("", folder / "file", temporary) == last);
  struct stat s {};
  REQUIRE(::stat(last.c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0700);
  // One that others could have prepared is not trusted.
  ::chmod(last.c_str(), 0777);
  CHECK_THROWS_WITH(choose_cache_folder("", "", temporary),
                    Catch::Contains("no folder for prepared data"));
}

}  // namespace
}  // namespace sherd
