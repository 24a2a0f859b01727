// Processes: the ranks on this host as processes. Reads their memory, and sees when one is gone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "dist/comm/file_handle.h"
#include "dist/comm/peer_memory.h"

namespace sherd {

/// Thread-safe.
class Processes final : public PeerMemory {
 public:
  /// `ids`: the processes of the ranks on this host, by rank; this one is `me`. Throws Error(comm)
  /// where one cannot be watched.
  Processes(std::map<int, int32_t> ids, int me);

  bool is_shared() const override { return false; }
  void read(int rank, std::span<const Piece> pieces) const override;

  /// Of a rank of this host; this one is never gone.
  bool is_gone(int rank) const;
  /// A descriptor that poll finds readable when it is; -1 for this rank.
  int end_of(int rank) const;
  /// "rank 2 (process 1234) is gone", or "".
  std::string gone() const;
  std::string name_of(int rank) const;

 private:
  const std::map<int, int32_t> ids_;
  std::map<int, FileHandle> ends_;  // of each rank but this one
};

/// Lets the other processes of this host read this one's memory, where only a parent may do so.
void let_siblings_read();

}  // namespace sherd
