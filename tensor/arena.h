// A heap in one reserved range of addresses: best fit, neighbours merge when freed.
// One range rather than many segments, so that a freed buffer can serve any later size and the
// resident memory is the high-water mark of what was live, plus little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace sherd {

/// Not thread-safe; Allocator holds a lock.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// `bytes` > 0, a multiple of 64 → 64-byte aligned memory, or nullptr when no more can be had.
  std::byte* allocate(size_t bytes);
  void free(std::byte* data);

  /// How often memory was asked of the system.
  int64_t growths() const { return growths_; }

 private:
  using Chunks = std::map<std::byte*, size_t>;

  bool grow(size_t bytes);
  void add_free(std::byte* data, size_t bytes);

  std::byte* base_ = nullptr;
  size_t reserved_ = 0;
  size_t committed_ = 0;
  int64_t growths_ = 0;
  Chunks used_;
  Chunks free_;                                      // by address, to merge
  std::set<std::pair<size_t, std::byte*>> by_size_;  // the same chunks, to fit
};

}  // namespace sherd
