#include "dist/comm/board.h"

#include <thread>
#include <vector>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

TEST_CASE("four ranks meet ten thousand times, and each sees what the others say") {
  constexpr int kRanks = 4;
  alignas(64) std::byte memory[4096];
  REQUIRE(Board::bytes(kRanks) <= sizeof memory);
  Board* const board = Board::create(memory, kRanks);
  std::vector<int> faults(kRanks);
  const auto run = [&](int rank) {
    BoardUser user(board, rank,
                   {.timeout_s = 60, .world = board, .ranks = {0, 1, 2, 3}, .lost_rank = {}});
    for (int64_t i = 0; i < 10000; ++i) {
      int64_t mine = i * kRanks + rank;
      BoardEntry entry;
      entry.op = 6;
      entry.elements = i;
      entry.addresses = &mine;
      user.meet(entry);
      for (int r = 0; r < kRanks; ++r)
        faults[static_cast<size_t>(rank)] +=
            *static_cast<const int64_t*>(user.said_by(r).addresses) != i * kRanks + r;
      user.leave();
    }
  };
  std::vector<std::thread> threads;
  for (int r = 1; r < kRanks; ++r) threads.emplace_back(run, r);
  run(0);
  for (auto& t : threads) t.join();
  CHECK(faults == std::vector<int>(kRanks, 0));
}

TEST_CASE("the first cause of an abort is kept, cut to what fits") {
  alignas(64) std::byte memory[4096];
  Board* const board = Board::create(memory, 1);
  CHECK_FALSE(board->aborted());
  board->abort(std::string(5000, 'x'));
  board->abort("later");
  CHECK(board->aborted());
  CHECK(board->cause().size() < 2100);
  CHECK(board->cause().substr(0, 3) == "xxx");
}

}  // namespace
}  // namespace sherd
