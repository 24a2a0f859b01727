#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <thread>

#include "third_party/catch2/test.h"

namespace sherd {

TEST_CASE("cores are those that the process may use") {
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= static_cast<int>(std::thread::hardware_concurrency()));
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &before)) continue;
    CPU_SET(i, &one);
    break;
  }
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(usable_cores() == 1);
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("memory is at most what the machine has") {
  CHECK(usable_memory_bytes() > (std::int64_t{1} << 20));
  CHECK(usable_memory_bytes() <= std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE));
}

TEST_CASE("names are not empty") {
  CHECK(!cpu_name().empty());
  CHECK(kernel_name().starts_with("Linux"));
}

}  // namespace sherd
