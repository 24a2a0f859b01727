// PeerMemory: how a rank reads the memory of the other ranks on its host.
#pragma once

#include <cstddef>

namespace sherd {

/// Thread-safe.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  /// Whether addresses of other ranks are valid here, so that nothing need be copied to be read.
  virtual bool is_shared() const = 0;
  /// Copies `bytes` from `address` in the memory of `rank`. Throws Error(comm) if that fails.
  virtual void read(int rank, const void* address, void* to, size_t bytes) const = 0;
};

}  // namespace sherd
