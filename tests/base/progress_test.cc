#include "base/progress.h"

#include <sstream>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("plain lines come at most every five seconds, first and last always") {
  std::ostringstream out;
  double now = 100;
  {
    Progress progress(out, ProgressMode::plain, [&] { return now; });
    for (int step = 1; step <= 9; ++step, now += 2) progress.update(step, 9, "loss");
  }
  CHECK(out.str() ==
        "step 1/9  loss\n"
        "step 4/9  loss  0:10 left\n"
        "step 7/9  loss  0:04 left\n"
        "step 9/9  loss\n");
}

TEST_CASE("an interrupted run shows its last step") {
  std::ostringstream out;
  Progress progress(out, ProgressMode::plain, [] { return 0.0; });
  progress.update(5, 9, "a");
  progress.update(6, 9, "b");
  progress.line("saved");
  progress.finish();
  progress.finish();
  CHECK(out.str() == "step 5/9  a\nsaved\nstep 6/9  b  0:00 left\n");
}

TEST_CASE("a terminal has one line that changes") {
  std::ostringstream out;
  double now = 0;
  {
    Progress progress(out, ProgressMode::terminal, [&] { return now; });
    progress.update(1, 3, "a");
    progress.update(2, 3, "too soon");
    now = 1;
    progress.line("val 2.5");
    progress.update(3, 3, "c");
  }
  CHECK(out.str() ==
        "\rstep 1/3  a\x1b[K"
        "\r\x1b[Kval 2.5\nstep 1/3  a"
        "\rstep 3/3  c\x1b[K\n");
}

TEST_CASE("a terminal line is cut to its width, and never inside a character") {
  std::ostringstream out;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "é";
  Progress progress(out, ProgressMode::terminal, [] { return 0.0; });
  progress.update(1, 3, text);
  const std::string drawn = out.str().substr(0, out.str().size() - 3);
  CHECK(drawn.size() < 2000);
  CHECK(drawn.ends_with("é"));
}

TEST_CASE("quiet says nothing") {
  std::ostringstream out;
  {
    Progress progress(out, ProgressMode::quiet);
    progress.update(1, 3, "a");
    progress.line("b");
  }
  CHECK(out.str().empty());
}

TEST_CASE("durations") {
  CHECK(format_seconds(0) == "0:00");
  CHECK(format_seconds(65) == "1:05");
  CHECK(format_seconds(3725) == "1:02:05");
  CHECK(format_seconds(1e300) == "277777:46:40");
}

TEST_CASE("a pipe is no terminal") { CHECK(progress_mode(-1) == ProgressMode::plain); }

}  // namespace
}  // namespace sherd
