#include "train/sampler.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"
#include "train/batch.h"

namespace sherd {
namespace {

TEST_CASE("a permutation hits each element once") {
  for (const std::uint64_t size :
       {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 100, 1000, 1023, 1024, 1025, 65537}) {
    for (const std::uint64_t key : {0ull, 1ull, 0xffffffffffffffffull}) {
      const Permutation p(size, key);
      std::vector<bool> seen(size);
      for (std::uint64_t i = 0; i < size; ++i) {
        const std::uint64_t to = p(i);
        REQUIRE(to < size);
        REQUIRE_FALSE(seen[to]);
        seen[to] = true;
      }
      CHECK_THROWS_AS(p(size), Error);
    }
  }
  CHECK_THROWS_AS(Permutation(0, 1), Error);
}

TEST_CASE("a permutation of a huge range stays in it") {
  const std::uint64_t size = (std::uint64_t{1} << 62) - 57;
  const Permutation p(size, 5);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    REQUIRE(p(i * (size / 1000)) < size);
    seen.insert(p(i * (size / 1000)));
  }
  CHECK(seen.size() == 1000);
}

TEST_CASE("every element goes everywhere about equally often") {
  // Chi-square of 10 x 10 counts; 81 degrees of freedom: 99.99 % below 140.
  constexpr int kSize = 10, kKeys = 20000;
  int count[kSize][kSize] = {};
  for (int key = 0; key < kKeys; ++key) {
    const Permutation p(kSize, static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15);
    for (int i = 0; i < kSize; ++i) ++count[i][p(static_cast<std::uint64_t>(i))];
  }
  double chi = 0;
  const double expected = double(kKeys) / kSize;
  for (const auto& row : count) {
    for (const int c : row) chi += (c - expected) * (c - expected) / expected;
  }
  CHECK(chi < 140);
  CHECK(chi > 35);
}

TEST_CASE("neighbours do not stay neighbours") {
  const Permutation p(10000, 1);
  double distance = 0;
  for (std::uint64_t i = 0; i + 1 < 10000; ++i) {
    distance += std::abs(static_cast<double>(p(i)) - static_cast<double>(p(i + 1)));
  }
  CHECK(distance / 9999 == Approx(10000 / 3.0).epsilon(0.05));  // of two random points
}

std::vector<std::int64_t> begins(const Sampler& s, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(s.begin_of(first + i));
  return out;
}

TEST_CASE("each window comes once an epoch, and no sample passes the end") {
  for (const std::int64_t context : {1, 3, 64}) {
    for (const std::int64_t tokens : {context + 1, 2 * context, 2 * context + 1, 1000 + context}) {
      for (const SampleOrder order : {SampleOrder::shuffled, SampleOrder::sequential}) {
        const Sampler s(tokens, context, order, 7);
        const std::int64_t n = s.samples_per_epoch();
        CHECK(n == (tokens - 1) / context);
        for (int epoch = 0; epoch < 3; ++epoch) {
          auto got = begins(s, epoch * n, n);
          CHECK(s.epoch_of(epoch * n) == epoch);
          CHECK(s.epoch_of(epoch * n + n - 1) == epoch);
          if (order == SampleOrder::shuffled) std::sort(got.begin(), got.end());
          for (std::int64_t i = 0; i < n; ++i)
            REQUIRE(got[static_cast<std::size_t>(i)] == i * context);
          REQUIRE(got.back() + context + 1 <= tokens);
        }
      }
    }
  }
}

TEST_CASE("epochs and seeds have orders of their own") {
  const Sampler a(6401, 64, SampleOrder::shuffled, 1), b(6401, 64, SampleOrder::shuffled, 2);
  const std::int64_t n = a.samples_per_epoch();
  REQUIRE(n == 100);
  CHECK(begins(a, 0, n) != begins(a, n, n));
  CHECK(begins(a, 0, n) != begins(b, 0, n));
  CHECK(begins(a, n, n) != begins(b, 0, n));
  CHECK(begins(a, 0, n) == begins(Sampler(6401, 64, SampleOrder::shuffled, 1), 0, n));
}

TEST_CASE("the order is the same in every version") {
  // A run that is resumed with a newer version must go on with the samples that it has not seen.
  CHECK(begins(Sampler(101, 10, SampleOrder::shuffled, 1), 0, 10) ==
        std::vector<std::int64_t>{80, 90, 20, 0, 70, 60, 10, 50, 40, 30});
  CHECK(begins(Sampler(101, 10, SampleOrder::random, 1), 0, 6) ==
        std::vector<std::int64_t>{33, 47, 67, 63, 79, 42});
}

TEST_CASE("random begins cover all places and no more") {
  const Sampler s(70, 64, SampleOrder::random, 3);
  std::set<std::int64_t> seen;
  for (const std::int64_t begin : begins(s, 0, 500)) seen.insert(begin);
  CHECK(seen == std::set<std::int64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("too few tokens") {
  CHECK_THROWS_WITH(Sampler(64, 64, SampleOrder::shuffled, 1),
                    "sampler: a sample needs context + 1 = 65 tokens, but there are 64");
  CHECK_THROWS_AS(Sampler(0, 1, SampleOrder::shuffled, 1), Error);
  CHECK_THROWS_AS(Sampler(10, 0, SampleOrder::shuffled, 1), Error);
  CHECK_NOTHROW(Sampler(65, 64, SampleOrder::random, 1));
  CHECK_THROWS_AS(Sampler(65, 64, SampleOrder::random, 1).begin_of(-1), Error);
}

TEST_CASE("a step's samples depend neither on ranks nor on where the run was resumed") {
  const test::TempFolder folder;
  {
    TokenFileWriter writer(folder / "t.bin", 1000);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 500; ++i) ids.push_back(i);
    writer.append(ids);
    writer.commit();
  }
  std::vector<TokenFile> files;
  files.push_back(TokenFile::open(folder / "t.bin"));
  const TokenSource source(std::move(files));
  const std::int64_t T = 7;
  for (const SampleOrder order :
       {SampleOrder::shuffled, SampleOrder::sequential, SampleOrder::random}) {
    const Sampler sampler(source.size(), T, order, 5);
    // 12 samples a step, as ranks x accumulation x micro-batch; 20 steps pass the end of an epoch.
    std::vector<std::int32_t> reference;
    struct Split {
      std::int64_t ranks, accumulate, micro_batch;
    };
    for (const Split split :
         {Split{1, 1, 12}, Split{1, 4, 3}, Split{2, 2, 3}, Split{4, 1, 3}, Split{3, 4, 1}}) {
      std::vector<std::int32_t> run;
      std::int64_t position = 0;
      for (int step = 0; step < 20; ++step) {
        for (std::int64_t g = 0; g < split.ranks * split.accumulate; ++g) {
          const std::int64_t first = first_sample(position, g, split.micro_batch);
          const auto batch = read_batch(source, sampler, first, split.micro_batch);
          REQUIRE(batch.size() == static_cast<std::size_t>(split.micro_batch * (T + 1)));
          run.insert(run.end(), batch.begin(), batch.end());
        }
        position += split.ranks * split.accumulate * split.micro_batch;
      }
      if (reference.empty()) reference = run;
      REQUIRE(run == reference);
    }
    for (std::size_t i = 0; i < reference.size(); i += T + 1) {
      for (std::size_t j = 1; j <= static_cast<std::size_t>(T); ++j) {
        REQUIRE(reference[i + j] == reference[i] + static_cast<std::int32_t>(j));
      }
    }
    // A sampler made anew goes on from any position.
    for (const std::int64_t position : {1, 70, 71, 72, 239}) {
      const Sampler resumed(source.size(), T, order, 5);
      const auto one = read_batch(source, resumed, position, 1);
      const auto at = static_cast<std::size_t>(position * (T + 1));
      const std::vector<std::int32_t> want(
          reference.begin() + static_cast<std::ptrdiff_t>(at),
          reference.begin() + static_cast<std::ptrdiff_t>(at + T + 1));
      REQUIRE(one == want);
    }
    CHECK(read_batch(source, sampler, 3, 0).empty());
  }
}

}  // namespace
}  // namespace sherd
