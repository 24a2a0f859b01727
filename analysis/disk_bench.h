// What a disk gives a checkpoint: the calls that saving makes, timed until the bytes are on it.
#pragma once

#include <cstdint>
#include <string>

namespace sherd {

struct DiskTimes {
  std::int64_t bytes = 0;
  double write_s = 0;  ///< a file of `bytes` in pieces of 4 MiB, with fsync
  double read_s = 0;   ///< the same file, after the system was asked to forget its pages
  double sync_ms = 0;  ///< median of 20 times: 4 KiB in a new file, and fsync
};

/// Writes and reads a file in `folder`, which is made if it is not there; the file is gone
/// afterwards, also after an error.
/// throws usage if `bytes` is less than 1 MiB; io, before anything is written, if the disk has too
/// little room; io
DiskTimes time_disk(const std::string& folder, std::int64_t bytes);

}  // namespace sherd
