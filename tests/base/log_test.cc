#include "base/log.h"

#include <sstream>
#include <thread>
#include <vector>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("lines carry the prefix") {
  std::ostringstream out;
  Log log(out, "rank 2");
  log.info("loss ", 1.5);
  log.warn("slow");
  CHECK(out.str() == "rank 2: loss 1.5\nrank 2: warning: slow\n");
}

TEST_CASE("quiet drops all but warnings") {
  std::ostringstream out;
  Log log(out, "", LogLevel::quiet);
  log.info("loss");
  log.warn("slow");
  CHECK(out.str() == "warning: slow\n");
}

TEST_CASE("once means once a text") {
  std::ostringstream out;
  Log log(out);
  for (int i = 0; i < 3; ++i) log.info_once("f32 on ", i % 2);
  CHECK(out.str() == "f32 on 0\nf32 on 1\n");
}

TEST_CASE("lines of threads do not mix") {
  std::ostringstream out;
  Log log(out);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) log.info(std::string(20, static_cast<char>('a' + t)));
    });
  }
  for (auto& t : threads) t.join();
  std::istringstream in(out.str());
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) REQUIRE(line == std::string(20, line[0]));
  CHECK(lines == 200);
}

}  // namespace
}  // namespace sherd
