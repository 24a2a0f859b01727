// The folder of a run: who may write to it, and where its files are.
// Invariant: at most one live process holds a folder; a folder with content is taken only to go on
// with the run in it.
#pragma once

#include <fstream>
#include <string>

namespace sherd {

enum class FolderUse { fresh, resumed };

/// Holds a lock on the folder while it lives; the system drops it when the process dies.
class RunFolder {
 public:
  /// Makes the folder if it is not there.
  /// throws usage if another process holds it, or (fresh) it is not empty; io
  RunFolder(std::string path, FolderUse use);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.toml"; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  /// `dir` (checkpoint.dir), or the folder's own if that is empty.
  std::string checkpoints(const std::string& dir) const {
    return dir.empty() ? path_ + "/checkpoints" : dir;
  }

 private:
  void lock();

  std::string path_;
  int fd_ = -1;
};

/// Where ranks other than 0, which has the terminal, write their lines.
inline std::string rank_logs(const std::string& folder) { return folder + "/logs"; }
/// Opens "rank_2.log" there to write at its end. throws io
std::ofstream open_rank_log(const std::string& folder, int rank);

}  // namespace sherd
