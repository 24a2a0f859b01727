// [offload]: where state rests while the device does not need it.
#pragma once

#include <string>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct OffloadSection {
  std::string params = "none";
  std::string gradients = "none";
  std::string optimizer = "none";
  std::string activations = "none";
  std::string path;
  std::int64_t buffers = 4;
  Bytes buffer_bytes{16 << 20};
  std::int64_t queue_depth = 32;

  void fields(auto& v) {
    const one_of places{"none", "cpu", "nvme"};
    v("params", params, "where parameters rest", places);
    v("gradients", gradients, "where gradients rest", places);
    v("optimizer", optimizer, "where the optimizer's state rests", places);
    v("activations", activations, "where activations rest", places);
    v("path", path, "folder for nvme");
    v("buffers", buffers, "staging buffers, >= 1");
    v("buffer_bytes", buffer_bytes, "size of one");
    v("queue_depth", queue_depth, "requests in flight, >= 1");
  }

  void validate() const {
    check_available("params", params, {"none"});
    check_available("gradients", gradients, {"none"});
    check_available("optimizer", optimizer, {"none"});
    check_available("activations", activations, {"none"});
    check_field(buffers >= 1, "buffers", "expected >= 1, got", buffers);
    check_field(buffer_bytes.count >= 4096, "buffer_bytes", "expected at least 4KiB");
    check_field(queue_depth >= 1, "queue_depth", "expected >= 1, got", queue_depth);
  }

  bool operator==(const OffloadSection&) const = default;
};

}  // namespace sherd
