#include "train/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace sherd {
namespace {

bool usable(const std::string& folder) {
  try {
    make_folders(folder);
  } catch (const Error&) {
    return false;
  }
  return ::access(folder.c_str(), W_OK | X_OK) == 0;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string choose_cache_folder(const std::string& xdg_cache_home, const std::string& home,
                                const std::string& temporary) {
  // The XDG base directory specification: a relative path is to be ignored.
  if (xdg_cache_home.starts_with('/') && usable(xdg_cache_home + "/sherd"))
    return xdg_cache_home + "/sherd";
  if (home.starts_with('/') && usable(home + "/.cache/sherd")) return home + "/.cache/sherd";
  const std::string folder = temporary + "/sherd-" + std::to_string(::getuid());
  // Others can write beside it, so it must be ours and closed to them.
  ::mkdir(folder.c_str(), 0700);
  struct stat s {};
  const bool ours = ::lstat(folder.c_str(), &s) == 0 && S_ISDIR(s.st_mode) &&
                    s.st_uid == ::getuid() && (s.st_mode & 022) == 0;
  if (!ours || !usable(folder)) {
    fail_as(ErrorKind::io, "no folder for prepared data: neither ~/.cache/sherd nor", folder,
            "can be written");
  }
  return folder;
}

std::string default_cache_folder() {
  std::error_code error;
  const std::string temporary = std::filesystem::temp_directory_path(error).string();
  return choose_cache_folder(variable("XDG_CACHE_HOME"), variable("HOME"),
                             error ? "/tmp" : temporary);
}

}  // namespace sherd
