#include "dist/comm/mpi_launch.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"

namespace sherd {

namespace {

std::vector<std::string> own_arguments() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::string> arguments;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\0', begin), all.size());
    arguments.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return arguments;
}

std::string own_path() {
  std::string path(4096, '\0');
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  if (n < 0) fail_as(ErrorKind::io, "cannot tell where this program is:", std::strerror(errno));
  path.resize(static_cast<size_t>(n));
  return path;
}

}  // namespace

std::optional<int> mpirun_ranks() {
  const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size == nullptr) return std::nullopt;
  return std::atoi(size);
}

void restart_under_mpirun(int64_t ranks) {
  std::vector<std::string> words = {"mpirun",    "--oversubscribe",
                                    "--bind-to", "none",
                                    "--mca",     "odls_base_sigkill_timeout",
                                    "60",        "--mca",
                                    "btl",       "self,vader,tcp",
                                    "-np",       std::to_string(ranks),
                                    own_path()};
  const std::vector<std::string> arguments = own_arguments();
  if (!arguments.empty()) words.insert(words.end(), arguments.begin() + 1, arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // mpirun refuses to run as root, as in a container, unless told twice.
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  execvp(argv[0], argv.data());
  fail(
      "dist.engine = mpi needs mpirun, which cannot be started; install it with apt-get install "
      "openmpi-bin libopenmpi-dev, or use dist.engine = threads:",
      std::strerror(errno));
}

}  // namespace sherd
