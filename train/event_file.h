// TensorBoard's event files: a run's metrics as curves in the browser.
// Format: TFRecord framing (u64 length, masked CRC-32C of it, payload, masked CRC-32C of it; all
// little-endian) around Event messages in protobuf's wire format. From tensorboard's
// summary/writer/record_writer.py and compat/proto/{event,summary,tensor}.proto.
// Invariant: a record is in the file whole, or the file ends within it, which readers expect.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/metrics.h"

namespace sherd {

/// CRC-32C (Castagnoli) of `data`: RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view data);

/// A payload in its frame.
std::string framed_record(std::string_view payload);

/// Event messages; wall_s are seconds since 1970.
std::string version_event(double wall_s);
/// A run begins, or goes on, after `step`: readers forget events of later steps in older files.
std::string start_event(double wall_s, std::int64_t step);
std::string scalars_event(double wall_s, std::int64_t step,
                          const std::vector<std::pair<std::string, float>>& scalars);
std::string text_event(double wall_s, std::string_view tag, std::string_view markdown);

class EventFile {
 public:
  /// A new file "events.out.tfevents.SECONDS.HOST.PID" in the folder, of a run that has made `step`
  /// steps; `config` is shown as text. throws io
  EventFile(const std::string& folder, std::int64_t step, const std::string& config);
  /// Its curves have the names that they have in metrics.jsonl; in the file when this returns.
  /// throws io
  void append(const StepMetrics& metrics);

 private:
  void write(const std::string& event);

  std::string path_;
  std::ofstream out_;
};

}  // namespace sherd
