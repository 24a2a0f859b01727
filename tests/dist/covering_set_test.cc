// Every pair of options' values, in as few trainings as a greedy search finds: each gives, with
// memory that is NaN where a rank holds nothing, the bits of ddp.
#include <cstdio>
#include <set>

#include "tests/dist/options.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using test::cover_pairs;
using test::OptionPair;
using test::OptionRow;
using test::Options;
using test::OptionTable;
using test::pairs_of;
using test::Trace;

TEST_CASE("a covering set has every pair of values that may occur together") {
  const std::vector<int> counts{3, 4, 2, 3};
  // Not all pairs may occur, and some only where a third option allows it.
  const auto valid = [](const OptionRow& row) {
    return row[0] + row[1] != 2 && (row[2] == 0 || row[3] != row[1]);
  };
  std::set<OptionPair> wanted, covered;
  int product = 0;
  test::each_row(counts, valid, [&](const OptionRow& row) {
    ++product;
    for (const auto& pair : pairs_of(row)) wanted.insert(pair);
  });
  const auto rows = cover_pairs(counts, valid);
  for (const auto& row : rows) {
    CHECK(valid(row));
    for (const auto& pair : pairs_of(row)) covered.insert(pair);
  }
  CHECK(covered == wanted);
  CHECK_FALSE(wanted.contains({{0, 0}, {1, 2}}));
  CHECK(rows.size() >= 12);  // the largest two options' product
  CHECK(rows.size() < static_cast<size_t>(product) / 2);
  CHECK(cover_pairs(counts, valid) == rows);
}

TEST_CASE("the trainings' options cover every pair") {
  const OptionTable table;
  std::set<OptionPair> wanted, covered;
  test::each_row(
      table.counts(), [&](const OptionRow& row) { return test::is_valid(table.at(row)); },
      [&](const OptionRow& row) {
        for (const auto& pair : pairs_of(row)) wanted.insert(pair);
      });
  for (const Options& o : test::covering_set()) {
    OptionRow row;
    test::each_row(
        table.counts(), [&](const OptionRow& r) { return row.empty() && table.at(r) == o; },
        [&](const OptionRow& r) { row = r; });
    for (const auto& pair : pairs_of(row)) covered.insert(pair);
  }
  CHECK(covered == wanted);
}

TEST_CASE("all pairs of options give the bits of ddp, with NaN wherever nothing is held") {
  int run = 0;
  for (const Options& o : test::covering_set()) {
    INFO(o.name());
    auto t = test::training_of(o);
    const auto r = o.reference();
    const Trace reference = test::train_sharded(test::training_of(r), test::plan_of(r));
    t.poison = true;
    CHECK(test::train_sharded(t, test::plan_of(o)).same_results(reference));
    ++run;
  }
  std::printf("%d trainings\n", run);
}

}  // namespace
}  // namespace sherd
