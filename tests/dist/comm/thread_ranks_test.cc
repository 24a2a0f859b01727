#include "dist/comm/thread_ranks.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "base/progress.h"
#include "tests/dist/comm/collective_checks.h"
#include "tests/support/ranks.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;
using test::on_ranks;

template <class Body>
std::string error_of(const RanksOptions& options, const Body& body) {
  try {
    run_thread_ranks(options, body);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

Work gather_ones(Rank& rank, const std::string& unit, int64_t rows) {
  const Cut cut = even_cut(1, rows, 1, rank.size);
  return rank.comm.all_gather({{Tensor::full(rank.runtime, {cut.size(rank.rank)}, 1),
                                Tensor::zeros(rank.runtime, {rows}), cut}},
                              {unit, Traffic::all_gather});
}

TEST_CASE("collectives of threads give what plain loops give") {
  const int ranks = GENERATE(1, 2, 3, 4, 8);
  CAPTURE(ranks);
  on_ranks(ranks, [](Rank& rank) {
    test::check_collectives(rank.comm, rank.runtime);
    test::check_total_bytes(rank.comm, rank.runtime);
  });
}

TEST_CASE("every instruction set sums alike") {
  for (int isa = 0; isa <= static_cast<int>(best_isa()); ++isa)
    run_thread_ranks({.ranks = 2, .runtime = {.isa = static_cast<Isa>(isa)}, .timeout_s = 60},
                     [](Rank& rank) { test::check_collectives(rank.comm, rank.runtime); });
}

TEST_CASE("groups of a mesh work beside each other and the world") {
  on_ranks(4, [](Rank& rank) { test::check_subgroups(rank.comm, rank.runtime, 2); });
}

TEST_CASE("collectives run beside the rank, in order") {
  on_ranks(3, [](Rank& rank) {
    std::vector<Work> works;
    for (int i = 0; i < 100; ++i) works.push_back(gather_ones(rank, "unit", i));
    for (Work& work : works) work.event().wait();
  });
}

TEST_CASE("a communicator may go while its calls are in flight") {
  on_ranks(2, [](Rank& rank) {
    Work work;
    const Tensor whole = Tensor::zeros(rank.runtime, {10});
    {
      const auto group = rank.comm.subgroup({0, 1});
      const Cut cut = even_cut(1, 10, 1, 2);
      if (rank.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      work = group->all_gather({{Tensor::full(rank.runtime, {5}, 1), whole, cut}}, {"late"});
    }
    work.event().wait();
    check(whole.to_vector<float>() == std::vector<float>(10, 1), "not gathered");
  });
}

TEST_CASE("different calls end all ranks, with both calls") {
  std::mutex mutex;
  std::set<std::string> causes;
  const auto keep = [&](Rank& rank, const auto& call) {
    try {
      call();
    } catch (const Error& e) {
      const std::lock_guard lock(mutex);
      const std::string text = e.what();
      causes.insert(text.substr(text.find("stopped: ")));
      throw;
    }
    check(false, "rank", rank.rank, "had no error");
  };
  SECTION("another unit") {
    const auto text = error_of({.ranks = 3}, [&](Rank& rank) {
      keep(rank,
           [&] { gather_ones(rank, rank.rank == 1 ? "blocks.1" : "blocks.0", 5).event().wait(); });
    });
    CHECK_THAT(text, Contains("rank 0 all_gather of blocks.0") &&
                         Contains("rank 1 all_gather of blocks.1"));
  }
  SECTION("another op") {
    const auto text = error_of({.ranks = 3}, [&](Rank& rank) {
      keep(rank, [&] {
        if (rank.rank == 2)
          rank.comm.barrier({"end"});
        else
          gather_ones(rank, "blocks.0", 5).event().wait();
      });
    });
    CHECK_THAT(text,
               Contains("rank 0 all_gather of blocks.0 (call 1, 1 tensors, 5 elements of f32)") &&
                   Contains("rank 2 exchange of end"));
  }
  SECTION("another root") {
    const auto text = error_of({.ranks = 3}, [&](Rank& rank) {
      keep(rank, [&] {
        rank.comm.broadcast({Tensor::zeros(rank.runtime, {3})}, rank.rank == 0 ? 0 : 1, {"w"})
            .event()
            .wait();
      });
    });
    CHECK_THAT(text, Contains("with other shapes, dtypes or roots"));
  }
  CHECK(causes.size() == 1);
}

TEST_CASE("a rank that throws ends the others at once, with its message") {
  std::atomic<int> told = 0;
  const auto expecting = [&](const char* cause, const auto& call) {
    try {
      call();
    } catch (const Error& e) {
      if (std::string(e.what()).find(cause) != std::string::npos) ++told;
      throw;
    }
  };
  const double begin_s = steady_seconds();
  SECTION("from its body") {
    const auto text = error_of({.ranks = 4}, [&](Rank& rank) {
      expecting("rank 2: no such file: data.bin", [&] {
        if (rank.rank == 2) fail("no such file: data.bin");
        gather_ones(rank, "blocks.3", 5).event().wait();
      });
    });
    CHECK(text == "rank 2: no such file: data.bin");
  }
  SECTION("case 31: from the thread of a group's collective") {
    const auto text = error_of({.ranks = 4}, [&](Rank& rank) {
      const int first = rank.rank / 2 * 2;
      const auto pair = rank.comm.subgroup({first, first + 1});
      const std::vector<Tensor> sent(2, Tensor::zeros(rank.runtime, {rank.rank == 2 ? 1 : 2}));
      const std::vector<Tensor> got(2, Tensor::zeros(rank.runtime, {2}));
      expecting("sends 4 bytes, and this rank wants 8", [&] {
        pair->all_to_all(sent, got, {"blocks.3"}).event().wait();
        rank.comm.barrier({"end"});
      });
    });
    CHECK_THAT(text, Contains("all_to_all of blocks.3") && Contains("rank 2 sends 4 bytes"));
  }
  SECTION("something that is no Error") {
    const auto text = error_of({.ranks = 4}, [&](Rank& rank) {
      if (rank.rank == 3) {
        ++told;
        throw std::runtime_error("boom");
      }
      expecting("rank 3: boom", [&] { rank.comm.barrier({"end"}); });
    });
    CHECK(text == "rank 3: boom");
  }
  CHECK(told == 4);
  CHECK(steady_seconds() - begin_s < 5);
}

TEST_CASE("a rank that ends too early is not waited for") {
  const double begin_s = steady_seconds();
  const auto text = error_of({.ranks = 3}, [](Rank& rank) {
    if (rank.rank != 1) rank.comm.barrier({"end"});
  });
  CHECK_THAT(text, Contains("rank 1 has ended") && Contains("exchange of end"));
  CHECK(steady_seconds() - begin_s < 5);
}

TEST_CASE("an error that nobody waited for is not lost") {
  const auto text = error_of({.ranks = 2}, [](Rank& rank) {
    std::vector<Tensor> sent(2, Tensor::zeros(rank.runtime, {1}));
    std::vector<Tensor> received(2, Tensor::zeros(rank.runtime, {2}));
    rank.comm.all_to_all(sent, received, {"w"});
  });
  CHECK_THAT(text, Contains("sends 4 bytes, and this rank wants 8"));
}

TEST_CASE("a timeout names who has not come") {
  const auto text = error_of({.ranks = 3, .timeout_s = 0.2}, [](Rank& rank) {
    rank.comm.barrier({"begin"});
    if (rank.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    rank.comm.barrier({"end"});
  });
  CHECK_THAT(text, Contains("timeout_s = 0.2") &&
                       Contains("rank 1 has not come (it made 1 calls)") &&
                       Contains("is in exchange of end"));
}

TEST_CASE("abort ends all ranks") {
  const auto text = error_of({.ranks = 2}, [](Rank& rank) {
    if (rank.rank == 1) rank.comm.abort("the user asked for it");
    rank.comm.barrier({"end"});
  });
  CHECK_THAT(text, Contains("the user asked for it"));
}

TEST_CASE("an imitated link takes its time") {
  std::mutex mutex;
  std::vector<CommSpan> spans;
  run_thread_ranks({.ranks = 2, .link = Link{.gbps = 0.01, .latency_us = 20000}}, [&](Rank& rank) {
    rank.comm.set_observer([&](const CommSpan& span) {
      const std::lock_guard lock(mutex);
      spans.push_back(span);
    });
    // Each rank receives 25,000 of 50,000 bytes: 20 ms at 10 Mbit/s, and 20 ms of latency.
    gather_ones(rank, "slow", 12500).event().wait();
  });
  REQUIRE(spans.size() == 2);
  for (const CommSpan& span : spans) {
    CHECK(span.unit == "slow");
    CHECK(std::string(span.op) == "all_gather");
    CHECK(span.bytes == 25000);
    CHECK(span.end_s - span.begin_s >= 0.04);
  }
}

TEST_CASE("wrong uses are refused where they are made") {
  const auto text = error_of({.ranks = 2}, [](Rank& rank) {
    rank.comm.all_gather({{Tensor::zeros(rank.runtime, {3}), Tensor::zeros(rank.runtime, {5}),
                           even_cut(1, 6, 1, 2)}},
                         {"w"});
  });
  CHECK_THAT(text, Contains("not what the cut says"));
}

}  // namespace
}  // namespace sherd
