#include "tensor/thread_pool.h"

#include <stdexcept>
#include <vector>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("each block runs exactly once, over many jobs") {
  ThreadPool pool(3);
  for (int job = 0; job < 2000; ++job) {
    std::vector<int> runs(static_cast<size_t>(job % 17), 0);
    pool.run(job % 17, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
    for (const int r : runs) REQUIRE(r == 1);
  }
}

TEST_CASE("an exception of a worker reaches the caller and the pool goes on") {
  ThreadPool pool(2);
  CHECK_THROWS_AS(pool.run(8,
                           [](int64_t i) {
                             if (i == 5) throw std::runtime_error("five");
                           }),
                  std::runtime_error);
  std::atomic<int> sum{0};
  pool.run(10, [&](int64_t i) { sum += static_cast<int>(i); });
  CHECK(sum == 45);
}

}  // namespace
}  // namespace sherd
