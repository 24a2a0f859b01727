#include "train/run_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"

namespace sherd {

TEST_CASE("a folder is made, and goes again if nothing was put into it") {
  const test::TempFolder temp;
  const std::string path = temp / "runs/a";
  {
    const RunFolder folder(path, FolderUse::fresh);
    CHECK(folder.path() == path);
    CHECK(folder.metrics_path() == path + "/metrics.jsonl");
    CHECK(folder.checkpoints("") == path + "/checkpoints");
    CHECK(folder.checkpoints("/elsewhere") == "/elsewhere");
  }
  CHECK(!std::filesystem::exists(path));
  {
    const RunFolder folder(path, FolderUse::fresh);
    write_file(folder.config_path(), "x");
  }
  CHECK(std::filesystem::exists(path + "/config.toml"));
}

TEST_CASE("content is taken only to go on with it") {
  const test::TempFolder temp;
  const std::string path = temp / "a";
  write_file(path + "/config.toml", "x");
  CHECK_THROWS_WITH(RunFolder(path, FolderUse::fresh), Catch::Contains("not empty"));
  CHECK_NOTHROW(RunFolder(path, FolderUse::resumed));
  // What a killed process left: its lock file alone.
  write_file(temp / "b/.lock", "");
  CHECK_NOTHROW(RunFolder(temp / "b", FolderUse::fresh));
  write_file(temp / "file", "x");
  CHECK_THROWS_WITH(RunFolder(temp / "file", FolderUse::fresh), Catch::Contains("there is a file"));
  CHECK_THROWS_AS(RunFolder("/proc/no/such", FolderUse::fresh), Error);
}

TEST_CASE("one holder at a time, and the lock dies with its process") {
  const test::TempFolder temp;
  const std::string path = temp / "a";
  write_file(path + "/config.toml", "x");
  std::optional<RunFolder> first(std::in_place, path, FolderUse::resumed);
  CHECK_THROWS_WITH(RunFolder(path, FolderUse::resumed), Catch::Contains("another process"));
  first.reset();

  int told[2];
  REQUIRE(::pipe(told) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder held(path, FolderUse::resumed);
    if (::write(told[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char x = 0;
  REQUIRE(::read(told[0], &x, 1) == 1);
  CHECK_THROWS_WITH(RunFolder(path, FolderUse::resumed), Catch::Contains("another process"));
  CHECK_THROWS_WITH(RunFolder(path, FolderUse::fresh), Catch::Contains("another process"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_NOTHROW(RunFolder(path, FolderUse::resumed));
  ::close(told[0]);
  ::close(told[1]);
}

}  // namespace sherd
