#include "base/machine.h"

#include <linux/io_uring.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

namespace sherd {
namespace {

std::optional<std::string> first_word(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  return word;
}

std::optional<std::int64_t> number_in(const std::string& path) {
  const auto word = first_word(path);
  if (!word || word->empty() || word->find_first_not_of("0123456789") != std::string::npos ||
      word->size() > 18)
    return std::nullopt;  // "max", "-1", or no such file
  return std::stoll(*word);
}

/// The folders of this process's cgroup and those above it, v2 ("0::/a/b") or of one v1 controller.
std::vector<std::string> cgroup_folders(const std::string& controller) {
  std::ifstream in("/proc/self/cgroup");
  std::vector<std::string> folders;
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = ',' + line.substr(first + 1, second - first - 1) + ',';
    std::string root;
    if (names == ",,")
      root = "/sys/fs/cgroup";
    else if (names.find(',' + controller + ',') != std::string::npos)
      root = "/sys/fs/cgroup/" + controller;
    else
      continue;
    std::string path = line.substr(second + 1);
    // A container sees its own group as the root.
    for (;; path.resize(path.rfind('/'))) {
      folders.push_back(root + path);
      if (path.empty() || path.find('/') == std::string::npos) break;
    }
    folders.push_back(root);
  }
  return folders;
}

/// CPU time per wall time; none: no quota.
std::optional<double> cpu_quota() {
  std::optional<double> least;
  const auto take = [&](double cores) { least = std::min(least.value_or(cores), cores); };
  for (const auto& folder : cgroup_folders("cpu")) {
    std::ifstream v2(folder + "/cpu.max");
    std::string quota;
    double period = 0;
    if (v2 >> quota >> period && quota != "max" && period > 0) take(std::stod(quota) / period);
    const auto v1 = number_in(folder + "/cpu.cfs_quota_us");
    const auto v1_period = number_in(folder + "/cpu.cfs_period_us");
    if (v1 && v1_period && *v1 > 0 && *v1_period > 0)
      take(static_cast<double>(*v1) / static_cast<double>(*v1_period));
  }
  return least;
}

int affinity_cores() {
  // Larger than any machine; the kernel refuses a set smaller than its own.
  constexpr int kMost = 8192;
  cpu_set_t* set = CPU_ALLOC(kMost);
  const std::size_t bytes = CPU_ALLOC_SIZE(kMost);
  int cores = 0;
  if (::sched_getaffinity(0, bytes, set) == 0) cores = CPU_COUNT_S(bytes, set);
  CPU_FREE(set);
  return cores > 0 ? cores : static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

int usable_cores() {
  const int cores = affinity_cores();
  const auto quota = cpu_quota();
  if (!quota || *quota >= cores) return cores;
  const int whole = static_cast<int>(*quota);
  return std::max(1, whole + (*quota > whole ? 1 : 0));
}

std::int64_t usable_memory_bytes() {
  std::int64_t bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  for (const auto& folder : cgroup_folders("memory"))
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"})
      if (const auto limit = number_in(folder + file); limit && *limit > 0)
        bytes = std::min(bytes, *limit);
  return bytes;
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string kernel_name() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  return std::string(name.sysname) + ' ' + name.release;
}

std::string io_uring_state() {
  io_uring_params params{};
  const long fd = syscall(SYS_io_uring_setup, 1, &params);
  if (fd < 0) return std::string("does not work here (") + std::strerror(errno) + ')';
  close(static_cast<int>(fd));
  return "works";
}

bool has_nvidia_gpu() { return std::filesystem::exists("/dev/nvidia0"); }

}  // namespace sherd
