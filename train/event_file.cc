#include "train/event_file.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "base/error.h"

namespace sherd {
namespace {

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    table[i] = crc;
  }
  return table;
}();

template <class T>
std::string bytes_of(T value) {  // x86-64 is little-endian
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Protobuf's wire types.
enum Wire : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string key(int field, Wire wire) {
  return varint(static_cast<std::uint64_t>(field) << 3 | wire);
}
std::string integer_field(int field, std::int64_t value) {
  return key(field, kVarint) + varint(static_cast<std::uint64_t>(value));
}
std::string bytes_field(int field, std::string_view bytes) {
  return key(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

/// Event.wall_time and Event.step; a field of value 0 is left out.
std::string event_head(double wall_s, std::int64_t step) {
  return key(1, kFixed64) + bytes_of(wall_s) + (step != 0 ? integer_field(2, step) : "");
}

double wall_clock_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  std::uint32_t crc = ~0u;
  for (const char c : data) crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<std::uint8_t>(c)) & 0xff];
  return ~crc;
}

std::string framed_record(std::string_view payload) {
  const auto masked = [](std::string_view data) {
    const std::uint32_t crc = crc32c(data);
    return bytes_of((crc >> 15 | crc << 17) + 0xa282ead8u);
  };
  const std::string length = bytes_of(static_cast<std::uint64_t>(payload.size()));
  return length + masked(length) + std::string(payload) + masked(payload);
}

std::string version_event(double wall_s) {
  return event_head(wall_s, 0) + bytes_field(3, "brain.Event:2");
}

std::string start_event(double wall_s, std::int64_t step) {
  constexpr int kStart = 1;  // SessionLog.START
  return event_head(wall_s, step) + bytes_field(7, integer_field(1, kStart));
}

std::string scalars_event(double wall_s, std::int64_t step,
                          const std::vector<std::pair<std::string, float>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars)
    summary += bytes_field(1, bytes_field(1, tag) + key(2, kFixed32) + bytes_of(value));
  return event_head(wall_s, step) + bytes_field(5, summary);
}

std::string text_event(double wall_s, std::string_view tag, std::string_view markdown) {
  constexpr int kString = 7;  // DataType.DT_STRING
  const std::string tensor =
      integer_field(1, kString) + bytes_field(2, "") + bytes_field(8, markdown);
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));
  const std::string value = bytes_field(1, tag) + bytes_field(8, tensor) + bytes_field(9, metadata);
  return event_head(wall_s, 0) + bytes_field(5, bytes_field(1, value));
}

EventFile::EventFile(const std::string& folder, std::int64_t step, const std::string& config) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) std::strcpy(host.data(), "host");
  const double now = wall_clock_s();
  std::ostringstream name;
  name << folder << "/events.out.tfevents." << static_cast<std::int64_t>(now) << '.' << host.data()
       << '.' << getpid();
  path_ = name.str();
  out_.open(path_, std::ios::binary | std::ios::app);
  if (!out_) fail_as(ErrorKind::io, "cannot write", path_);
  write(version_event(now));
  // Events of the steps that are made again go; those up to `step` stay.
  write(start_event(now, step + 1));
  std::string indented;  // a block of code in Markdown
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) indented += "    " + line + '\n';
  write(text_event(now, "config", indented));
}

void EventFile::append(const StepMetrics& m) {
  std::vector<std::pair<std::string, float>> scalars;
  const auto add = [&](const char* name, double value) {
    scalars.emplace_back(name, static_cast<float>(value));
  };
  add("loss", m.loss);
  if (m.val_loss) add("val_loss", *m.val_loss);
  if (std::isfinite(m.grad_norm)) add("grad_norm", m.grad_norm);
  add("lr", m.lr);
  add("step_ms", m.step_ms);
  add("tokens_per_s", m.tokens_per_s);
  if (m.sol) add("sol", *m.sol);
  add("peak_bytes", static_cast<double>(m.peak_bytes));
  add("exposed_comm_ms", m.exposed_comm_ms);
  if (m.loss_scale) add("loss_scale", *m.loss_scale);
  write(scalars_event(wall_clock_s(), m.step, scalars));
}

void EventFile::write(const std::string& event) {
  out_ << framed_record(event) << std::flush;
  if (!out_) fail_as(ErrorKind::io, "cannot write to", path_, "- is the disk full?");
}

}  // namespace sherd
