#include "train/find_checkpoint.h"

#include <filesystem>

#include "base/error.h"
#include "checkpoint/run_state.h"

namespace sherd {

FoundCheckpoint find_checkpoint(const std::string& path) {
  PosixFileSystem files;
  check(std::filesystem::is_directory(path), "there is no folder", path);
  if (std::filesystem::exists(path + "/state.json")) return {path, {}};
  std::string skipped;
  for (const std::string& folder : {path + "/checkpoints", path}) {
    LatestCheckpoint latest = latest_checkpoint(files, folder);
    if (latest.path) return {*latest.path, std::move(latest.skipped)};
    for (const auto& why : latest.skipped) skipped += "; " + why;
  }
  fail("there is no complete checkpoint in", path + skipped);
}

}  // namespace sherd
