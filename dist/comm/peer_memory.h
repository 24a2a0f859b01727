// PeerMemory: how a rank reads the memory of the other ranks on its host.
#pragma once

#include <cstddef>
#include <span>

namespace sherd {

/// Thread-safe.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  /// Whether addresses of other ranks are valid here, so that nothing need be copied to be read.
  virtual bool is_shared() const = 0;
  struct Piece {
    const void* from;  ///< in another rank's memory
    void* to;
    size_t bytes;
  };
  /// Copies all pieces from the memory of `rank`, in as few calls of the system as can be. Throws
  /// Error(comm) if that fails.
  virtual void read(int rank, std::span<const Piece> pieces) const = 0;
};

}  // namespace sherd
