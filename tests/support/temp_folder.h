// A folder for one test, gone at its end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace sherd::test {

class TempFolder {
 public:
  TempFolder() : path_((std::filesystem::temp_directory_path() / "sherd-test-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      fail_as(ErrorKind::io, "cannot make a temporary folder");
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  /// A path inside it.
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

}  // namespace sherd::test
