// The hexadecimal texts are what Python's tensorboard 2 writes for the same messages
// (tensorboard.compat.proto, RecordWriter, text_pb); tools/check_tensorboard reads a whole run
// back.
#include "train/event_file.h"

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<std::uint8_t>(c) >> 4];
    text += kDigits[static_cast<std::uint8_t>(c) & 15];
  }
  return text;
}

TEST_CASE("crc32c gives the values of RFC 3720") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
  CHECK(crc32c("123456789") == 0xE3069283u);
  CHECK(crc32c("") == 0);
}

TEST_CASE("events are, byte for byte, what tensorboard writes") {
  CHECK(hex(version_event(1764800000.25)) == "09000010802d4cda411a0d627261696e2e4576656e743a32");
  CHECK(hex(start_event(1764800001.0, 300)) == "09000040802d4cda4110ac023a020801");
  const std::string scalars = scalars_event(1764800000.5, 7, {{"loss", 1.25f}, {"lr", 0.001f}});
  CHECK(hex(scalars) ==
        "09000020802d4cda4110072a180a0b0a046c6f7373150000a03f0a090a026c72156f12833a");
  CHECK(hex(framed_record(scalars)) ==
        "2500000000000000eabc36f3"
        "09000020802d4cda4110072a180a0b0a046c6f7373150000a03f0a090a026c72156f12833a"
        "6a112fbd");
  CHECK(hex(text_event(2.0, "config", "[run]\nname = 1")) ==
        "0900000000000000402a2a0a280a06636f6e666967421408071200420e5b72756e5d0a6e616d65203d2031"
        "4a080a060a0474657874");
}

TEST_CASE("a file has a version, where the run begins, its configuration and a record a step") {
  const test::TempFolder folder;
  {
    EventFile file(folder.path(), 4, "[run]\n");
    StepMetrics m;
    m.step = 5;
    m.loss = 2;
    m.val_loss = 3;
    file.append(m);
    m.step = 6;
    m.grad_norm = NAN;  // skipped: no point in the curve
    m.val_loss.reset();
    file.append(m);
  }
  std::vector<std::string> payloads;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path().filename().string().starts_with("events.out.tfevents."));
    const std::string all = read_file(entry.path());
    for (std::size_t at = 0; at < all.size();) {
      const auto length = static_cast<std::uint8_t>(all[at]) +
                          256 * static_cast<std::size_t>(static_cast<std::uint8_t>(all[at + 1]));
      payloads.push_back(all.substr(at + 12, length));
      CHECK(framed_record(payloads.back()) == all.substr(at, length + 16));
      at += length + 16;
    }
  }
  REQUIRE(payloads.size() == 5);
  const auto tail = [&](std::size_t i) { return hex(payloads[i].substr(9)); };
  CHECK(tail(0) == hex(version_event(0)).substr(18));
  CHECK(tail(1) == hex(start_event(0, 5)).substr(18));
  CHECK(tail(2) == hex(text_event(0, "config", "    [run]\n")).substr(18));
  CHECK(payloads[3].find("val_loss") != std::string::npos);
  CHECK(payloads[3].find("grad_norm") != std::string::npos);
  CHECK(payloads[4].find("val_loss") == std::string::npos);
  CHECK(payloads[4].find("grad_norm") == std::string::npos);
}

TEST_CASE("a folder that is not there is an error with its name") {
  CHECK_THROWS_WITH(EventFile("/nonexistent/folder", 0, ""), Catch::Contains("/nonexistent"));
}

}  // namespace
}  // namespace sherd
