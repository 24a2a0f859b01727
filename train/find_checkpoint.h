// Which checkpoint a user's path means.
#pragma once

#include <string>
#include <vector>

namespace sherd {

struct FoundCheckpoint {
  std::string path;
  std::vector<std::string> skipped;  ///< newer ones that are damaged, as "PATH: why"
};

/// `path` itself if it is a checkpoint, else the newest complete one of the run in folder `path`.
/// throws usage if there is none, with what was found instead; io if the folder cannot be read
FoundCheckpoint find_checkpoint(const std::string& path);

}  // namespace sherd
