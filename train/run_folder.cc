#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace sherd {
namespace {

constexpr const char* kLock = ".lock";

/// False also when it cannot be listed.
bool is_empty_but_for_lock(const std::string& path) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename() != kLock) return false;
  return !error;
}

}  // namespace

RunFolder::RunFolder(std::string path, FolderUse use) : path_(std::move(path)) {
  namespace fs = std::filesystem;
  check(!fs::exists(path_) || fs::is_directory(path_),
        "run.out: there is a file where the run's folder should be:", path_);
  const auto has_content = [&] { return fs::is_directory(path_) && !is_empty_but_for_lock(path_); };
  // A folder that somebody else filled gets no lock file of ours.
  if (!has_content() || use == FolderUse::resumed || fs::exists(path_ + '/' + kLock)) {
    make_folders(path_);
    lock();
  }
  // Asked under the lock: whoever held it may have filled the folder since.
  if (use == FolderUse::fresh && has_content()) {
    if (fd_ >= 0) ::close(fd_);
    fail("run.out:", path_,
         "is not empty; --resume latest goes on with the run in it, --out DIR takes another "
         "folder");
  }
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  // A run that failed before it wrote anything leaves nothing behind.
  if (is_empty_but_for_lock(path_)) std::filesystem::remove_all(path_, ignored);
  ::close(fd_);
}

void RunFolder::lock() {
  const std::string file = path_ + '/' + kLock;
  for (;;) {
    fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) fail_as(ErrorKind::io, "cannot open", file, std::strerror(errno));
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(fd_);
      check(error != EWOULDBLOCK, "run.out: another process that is running uses", path_);
      fail_as(ErrorKind::io, "cannot lock", file, std::strerror(error));
    }
    struct stat now {};
    // Whoever held it before may have removed the file that we opened.
    if (::fstat(fd_, &now) == 0 && now.st_nlink > 0) return;
    ::close(fd_);
  }
}

std::ofstream open_rank_log(const std::string& folder, int rank) {
  const std::string logs = rank_logs(folder);
  make_folders(logs);
  const std::string path = logs + "/rank_" + std::to_string(rank) + ".log";
  std::ofstream log(path, std::ios::app);
  if (!log) fail_as(ErrorKind::io, "cannot write", path, std::strerror(errno));
  return log;
}

}  // namespace sherd
