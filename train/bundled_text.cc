#include "train/bundled_text.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace sherd {
namespace {

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) fail_as(ErrorKind::io, "cannot make a pipe");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_write();
    ::close(ends_[0]);
  }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

/// Starts the command with its output in `pipe`, no input and no environment; 0 or an errno.
int start(const std::vector<std::string>& command, const Pipe& pipe, pid_t& child) {
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  char* no_environment[] = {nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.write_end(), 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), no_environment);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// All that comes through the pipe, up to `limit` bytes and a little.
std::string drain(Pipe& pipe, std::size_t limit) {
  pipe.close_write();
  std::string out;
  std::vector<char> buffer(1 << 16);
  while (out.size() <= limit) {
    const ssize_t n = ::read(pipe.read_end(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return out;
}

std::string output_of(const BundledText& text) {
  Pipe pipe;
  pid_t child = 0;
  const int error = start(text.command, pipe, child);
  if (error != 0) {
    fail(("dataset " + text.name + " is printed by the program " + text.command[0] +
          ", which cannot be started (" + std::generic_category().message(error) +
          "); install it: apt-get install --no-install-recommends " + text.package)
             .c_str());
  }
  std::string out = drain(pipe, text.size);
  if (out.size() > text.size) ::kill(child, SIGKILL);  // it may never end
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return out;
}

bool is_the_text(const BundledText& text, std::string_view content) {
  return content.size() == text.size && hex(sha256(content)) == text.sha256;
}

bool is_prepared(const BundledText& text, const std::string& path) {
  try {
    return is_the_text(text, MappedFile(path).text());
  } catch (const Error&) {
    return false;  // not there yet
  }
}

}  // namespace

const BundledText& bundled_text(const std::string& name) {
  static const BundledText kKjv{
      "kjv",
      {"bible", "-p", "/usr/lib", "-f", "gen1:1-rev22:21"},
      "bible-kjv",
      4404412,
      "cd45f0c9cedab8e4439bd6486c8952c77cc8b0ecc5d1f6ae3513f2039f47229d",
  };
  check(name == kKjv.name, ("there is no dataset \"" + name + "\"; available: kjv").c_str());
  return kKjv;
}

std::string prepare_bundled_text(const BundledText& text, const std::string& cache) {
  const std::string path = cache + '/' + text.name + ".txt";
  if (is_prepared(text, path)) return path;
  const std::string content = output_of(text);
  if (!is_the_text(text, content)) {
    fail_as(ErrorKind::io,
            ("dataset " + text.name + ": expected " + std::to_string(text.size) +
             " bytes with SHA-256 " + text.sha256 + " from " + text.command[0] + ", got " +
             std::to_string(content.size()) + " with " + hex(sha256(content)) + "; is Debian's " +
             text.package + " installed as it came?")
                .c_str());
  }
  check_disk_space(path, content.size());
  write_file(path, content);
  return path;
}

}  // namespace sherd
