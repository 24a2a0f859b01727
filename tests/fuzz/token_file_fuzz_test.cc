// Any bytes as a token file: an io Error, or a file whose every id can be read.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "train/token_source.h"

namespace {

/// One file for the whole run: what is looked for is in the reader, not in the file system.
const std::string& path() {
  static const std::string name = "/tmp/sherd-token-fuzz-" + std::to_string(::getpid());
  return name;
}

void write(const std::uint8_t* data, std::size_t size) {
  std::FILE* f = std::fopen(path().c_str(), "wb");
  if (f == nullptr || std::fwrite(data, 1, size, f) != size || std::fclose(f) != 0) std::abort();
}

void read_all(sherd::TokenFile file) {
  const std::int64_t size = file.size();
  if (size < 1) std::abort();
  std::vector<std::int32_t> ids(static_cast<std::size_t>(size));
  file.read(0, ids);
  std::vector<sherd::TokenFile> files;
  files.push_back(std::move(file));
  sherd::TokenSource source(std::move(files));
  std::int32_t largest = 0;
  for (const std::int32_t id : ids) {
    if (id < 0) std::abort();
    largest = std::max(largest, id);
  }
  try {
    source.check_vocab(1000);
    source.read(0, ids);
    if (largest >= 1000) std::abort();
  } catch (const sherd::Error& e) {
    if (largest < 1000 || e.kind() != sherd::ErrorKind::usage) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  write(data, size);
  try {
    read_all(sherd::TokenFile::open(path()));
  } catch (const sherd::Error& e) {
    if (e.kind() != sherd::ErrorKind::io) std::abort();
  }
  ::unlink(path().c_str());
  return 0;
}
