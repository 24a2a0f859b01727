#include "base/interrupt.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("each signal is a wish to stop") {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const Interrupt interrupt;
    CHECK_FALSE(interrupt.requested());
    ::raise(signal);
    CHECK(interrupt.requested());
    CHECK(interrupt.signal() == signal);
    if (signal != SIGINT) ::raise(signal);  // again: no harm
    ::raise(SIGTERM);
    CHECK(interrupt.signal() == signal);  // the first stays
  }
}

TEST_CASE("the former handlers come back") {
  static int count = 0;
  const auto former = std::signal(SIGUSR1, [](int) { ++count; });
  {
    const Interrupt interrupt;
    ::raise(SIGUSR1);
    CHECK(count == 0);
    CHECK_THROWS_WITH(Interrupt(), "one Interrupt at a time");
    CHECK(interrupt.requested());  // the refused one touched nothing
  }
  ::raise(SIGUSR1);
  CHECK(count == 1);
  std::signal(SIGUSR1, former);
}

TEST_CASE("a second SIGINT ends the process") {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    const Interrupt interrupt;
    ::raise(SIGINT);
    ::raise(SIGINT);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("names") {
  CHECK(std::string(signal_name(SIGINT)) == "SIGINT");
  CHECK(std::string(signal_name(SIGTERM)) == "SIGTERM");
  CHECK(std::string(signal_name(SIGUSR1)) == "SIGUSR1");
}

}  // namespace
}  // namespace sherd
