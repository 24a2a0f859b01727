// CallEntry: what a rank says of the collective that it calls, and whether two ranks say the same.
#pragma once

#include <cstdint>
#include <string>

namespace sherd {

/// FNV-1a, a word at a time: the hash of nothing, and of one word more.
constexpr uint64_t kHashOfNothing = 14695981039346656037u;
constexpr uint64_t hash_on(uint64_t hash, int64_t word) {
  return (hash ^ static_cast<uint64_t>(word)) * 1099511628211u;
}

/// Plain data: it lies on a board, or travels as bytes.
struct CallEntry {
  uint32_t sequence = 0;  ///< number of the call in its group
  uint32_t op = 0;
  uint32_t dtype = 0;
  uint32_t items = 0;    ///< words that the ranks show each other
  int64_t elements = 0;  ///< of all wholes
  uint64_t details = 0;  ///< a hash of the rest that must be the same: cuts, roots, …
  char unit[80] = {};

  /// Whether two ranks make the same call.
  bool agrees_with(const CallEntry& other) const;
};

/// The name of an op in a CallEntry.
const char* op_name(uint32_t op);

/// "all_gather of blocks.3 (call 7, …)"
std::string text_of(const CallEntry& entry);

/// "ranks make different calls: …", of two that do not agree; the ranks are those of the world.
std::string difference(int first_rank, const CallEntry& first, int other_rank,
                       const CallEntry& other);

// What ends the wait of rank `me` in `entry` for a call `until` ("to begin", "to end"); ranks are
// those of the world.

/// `lost`: "rank 2 … is gone".
std::string lost_text(const std::string& lost, int me, const CallEntry& entry, const char* until);
std::string ended_text(int ended, int me, const CallEntry& entry, const char* until);
/// `places`: place_text() of all ranks.
std::string timeout_text(int me, double timeout_s, const char* until, const std::string& places);

/// Where `rank` is: in `entry`; or, where that is null, not yet in a call that begins, after
/// `calls` others, or still in one that ends.
std::string place_text(int rank, const CallEntry* entry, bool begins, uint32_t calls);

/// "rank 2: what", where `what` does not begin with that already.
std::string cause_at(int rank, const std::string& what);

}  // namespace sherd
