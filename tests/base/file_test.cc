#include "base/file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using test::TempFolder;

std::size_t num_files(const TempFolder& folder) {
  const std::filesystem::directory_iterator all(folder.path());
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_CASE("written and read") {
  const TempFolder folder;
  for (const std::size_t size : {0u, 1u, 4096u, 3'000'001u}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; i += 7) text[i] = static_cast<char>(i);
    const std::string path = folder / "a/b/file";
    write_file(path, text);
    CHECK(read_file(path) == text);
    CHECK(read_file(path, size) == text);
    CHECK(MappedFile(path).text() == text);
    CHECK(file_stamp(path).size == size);
  }
  CHECK(read_file("/proc/self/status").starts_with("Name:"));  // no size in advance
}

TEST_CASE("a mapped file can move") {
  const TempFolder folder;
  write_file(folder / "f", "abc");
  write_file(folder / "g", "de");
  MappedFile a(folder / "f");
  MappedFile b = std::move(a);
  CHECK(b.text() == "abc");
  a = MappedFile(folder / "g");
  b = std::move(a);
  CHECK(b.text() == "de");
}

TEST_CASE("errors name the path and the reason") {
  const TempFolder folder;
  const std::string missing = folder / "missing";
  CHECK_THROWS_WITH(read_file(missing),
                    Catch::StartsWith(missing + ": cannot open: No such file or directory"));
  CHECK_THROWS_WITH(MappedFile(missing),
                    Catch::StartsWith(missing + ": cannot open: No such file or directory"));
  CHECK_THROWS_WITH(file_stamp(missing),
                    Catch::StartsWith(missing + ": cannot stat: No such file or directory"));
  CHECK_THROWS_WITH(read_file(folder.path()), Catch::Contains("Is a directory"));
  CHECK_THROWS_WITH(MappedFile(folder.path()), Catch::Contains("Is a directory"));
  CHECK_THROWS_WITH(MappedFile("/dev/null"), Catch::Contains("not a regular file"));
  write_file(folder / "f", "0123456789");
  CHECK_THROWS_WITH(read_file(folder / "f", 9), Catch::Contains("longer than 9 B"));
  CHECK_THROWS_WITH(read_file("/dev/zero", 1 << 20), Catch::Contains("longer than 1.0 MiB"));
  CHECK_THROWS_WITH(write_file(folder / "f/g", ""),
                    Catch::Contains("f: cannot create folder: Not a directory"));
  CHECK_THROWS_WITH(make_folders(folder / "f/h"), Catch::Contains("cannot create folder: "));
  try {
    read_file(missing);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
  }
}

TEST_CASE("without commit nothing is left and the former file stays") {
  const TempFolder folder;
  write_file(folder / "f", "old");
  {
    AtomicFile file(folder / "f");
    file.append("new");
  }
  CHECK(read_file(folder / "f") == "old");
  CHECK(num_files(folder) == 1);
  {
    AtomicFile file(folder / "f");
    file.append("????5678");
    const std::string head = "1234";
    file.overwrite(0, std::as_bytes(std::span(head)));
    CHECK(read_file(folder / "f") == "old");
    file.commit();
  }
  CHECK(read_file(folder / "f") == "12345678");
  CHECK(num_files(folder) == 1);
}

TEST_CASE("a committed file has the permissions that the umask leaves") {
  const TempFolder folder;
  const mode_t before = ::umask(027);
  write_file(folder / "f", "");
  CHECK(::umask(before) == 027);
  struct stat s {};
  REQUIRE(::stat((folder / "f").c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0640);
}

TEST_CASE("writers in several threads give these permissions too, and leave the umask as it is") {
  const TempFolder folder;
  const mode_t before = ::umask(027);
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&folder, t] {
      for (int i = 0; i < 50; ++i)
        write_file(folder / (std::to_string(t) + '-' + std::to_string(i)), "");
    });
  for (auto& w : writers) w.join();
  CHECK(::umask(before) == 027);
  CHECK(num_files(folder) == 200);
  for (const auto& file : std::filesystem::directory_iterator(folder.path()))
    CHECK((static_cast<unsigned>(file.status().permissions()) & 0777) == 0640);
}

TEST_CASE("a write that fails leaves the former file") {
  const TempFolder folder;
  write_file(folder / "f", "old");
  // A limit on the size of files stands for a full disk.
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto former = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  CHECK_THROWS_WITH(write_file(folder / "f", std::string(5000, 'x')),
                    Catch::Contains("f: cannot write: File too large"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, former);
  CHECK(read_file(folder / "f") == "old");
  CHECK(num_files(folder) == 1);
}

TEST_CASE("free space") {
  const TempFolder folder;
  CHECK(free_disk_bytes(folder / "not/yet/there") == free_disk_bytes(folder.path()));
  CHECK_NOTHROW(check_disk_space(folder / "x", 0));
  CHECK_THROWS_WITH(check_disk_space(folder / "x", std::uint64_t{1} << 60),
                    Catch::Contains("x: needs 1048576.0 TiB, free "));
}

TEST_CASE("globs") {
  const TempFolder folder;
  for (const char* name : {"b.txt", "B.txt", "a.txt", "c.bin"}) write_file(folder / name, "");
  const auto paths = expand_glob(folder / "*.txt");
  CHECK(paths == std::vector<std::string>{folder / "B.txt", folder / "a.txt", folder / "b.txt"});
  CHECK(expand_glob(folder / "c.bin") == std::vector<std::string>{folder / "c.bin"});
  CHECK(expand_glob(folder / "*.none").empty());
  CHECK(expand_glob(folder / "none").empty());
  CHECK(expand_glob(folder / "none/*").empty());
  CHECK(expand_glob(folder / "c.bin/*").empty());
}

TEST_CASE("the stamp changes with the file") {
  const TempFolder folder;
  write_file(folder / "f", "a");
  const FileStamp before = file_stamp(folder / "f");
  CHECK(file_stamp(folder / "f") == before);
  write_file(folder / "f", "ab");
  CHECK_FALSE(file_stamp(folder / "f") == before);
}

}  // namespace
}  // namespace sherd
