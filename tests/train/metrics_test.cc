#include "train/metrics.h"

#include "base/file.h"
#include "base/json.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

StepMetrics step(std::int64_t n) {
  StepMetrics m;
  m.step = n;
  m.loss = 0.1 * static_cast<double>(n);
  return m;
}

std::string line(std::int64_t n) { return metrics_line(step(n)) + '\n'; }

}  // namespace

TEST_CASE("numbers read back exactly, and what is not known is left out") {
  StepMetrics m = step(3);
  m.loss = 1.0 / 3;
  m.val_loss = 5e-324;
  m.grad_norm = 1e300;
  m.comm_bytes.padding = 1LL << 60;
  const Json json = Json::parse(metrics_line(m));
  CHECK(json.at("loss").number() == 1.0 / 3);
  CHECK(json.at("val_loss").number() == 5e-324);
  CHECK(json.at("grad_norm").number() == 1e300);
  CHECK(json.at("comm_bytes").at("padding").integer() == 1LL << 60);
  CHECK(json.at("skipped").boolean() == false);
  CHECK(json.find("sol") == nullptr);
  CHECK(metrics_line(m).find('\n') == std::string::npos);
}

TEST_CASE("a resumed run's file goes on behind the steps that are kept") {
  const test::TempFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsFile file(path, 0);
    for (int n = 1; n <= 4; ++n) file.append(step(n));
    CHECK(read_file(path) == line(1) + line(2) + line(3) + line(4));
  }
  // The process died while it wrote.
  write_file(path, read_file(path) + line(5).substr(0, 20));
  MetricsFile file(path, 2);
  CHECK(read_file(path) == line(1) + line(2));
  file.append(step(3));
  CHECK(read_file(path) == line(1) + line(2) + line(3));
}

TEST_CASE("what cannot be written or read says so") {
  const test::TempFolder folder;
  CHECK_THROWS_WITH(MetricsFile("/dev/full", 0).append(step(1)), Catch::Contains("/dev/full"));
  write_file(folder / "bad", "nonsense\n");
  CHECK_THROWS_WITH(MetricsFile(folder / "bad", 1), Catch::Contains("bad"));
}

}  // namespace sherd
