// Bytes by category, live and at their peak, and the caching allocators beneath.
// Invariant: every byte that a tensor holds is counted in exactly one category.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensor/device.h"

namespace sherd {

enum class Category : uint8_t {
  params,
  gathered,
  grads,
  optimizer,
  activations,
  logits,
  comm,
  staging,
  other
};
inline constexpr int kCategories = 9;
const char* name_of(Category category);

/// Bytes per category.
using CategoryBytes = std::array<int64_t, kCategories>;

/// The instant at which the most bytes were live.
struct MemoryPeak {
  int64_t bytes = 0;
  CategoryBytes by_category{};
  /// The error frames at that instant, outermost first: "unit blocks.3", "linear", …
  std::vector<std::string> where;
};

struct AllocatorOptions {
  int64_t limit = 0;  ///< bytes; 0: none
  /// Fills memory with ones when it is given out and when it comes back: NaN in every floating
  /// dtype, -1 in integers. For tests: who reads what is not written yet, or not held any more,
  /// gets NaN. Costs a pass over the bytes each time.
  bool poison = false;
};

/// One device's memory for one rank. Thread-safe: a stream's worker may free what the rank
/// allocated.
class Allocator {
 public:
  explicit Allocator(const AllocatorOptions& options) : options_(options) {}
  virtual ~Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// 64-byte aligned, uninitialised or poisoned; nullptr on meta and for 0 bytes. Counted as
  /// `rounded(bytes)`. Throws Error(memory), with the breakdown by category, beyond the limit or
  /// when the system refuses.
  std::byte* allocate(size_t bytes, Category category);
  void free(std::byte* data, size_t bytes, Category category);
  /// Counts `bytes` that are live under another category from now on.
  void recategorize(size_t bytes, Category from, Category to);

  int64_t live_bytes() const;
  CategoryBytes live_by_category() const;
  MemoryPeak peak() const;
  /// Starts a new peak at what is live now.
  void reset_peak();
  /// How often the system was asked for memory; constant once training is steady.
  int64_t system_allocations() const;
  int64_t limit() const { return options_.limit; }

  /// What an allocation of `bytes` occupies: a multiple of 64.
  static int64_t rounded(size_t bytes) { return (static_cast<int64_t>(bytes) + 63) & ~int64_t{63}; }

 protected:
  /// nullptr when the system has no more; called with the lock held, bytes > 0 and a multiple
  /// of 64.
  virtual std::byte* take(size_t bytes) = 0;
  virtual void give(std::byte* data, size_t bytes) = 0;
  int64_t system_allocations_ = 0;

 private:
  void count(int64_t bytes, Category category);
  std::string breakdown() const;

  const AllocatorOptions options_;
  mutable std::mutex mutex_;
  int64_t live_ = 0;
  CategoryBytes by_category_{};
  MemoryPeak peak_;
};

/// The allocator of a device: a caching arena on cpu, counting alone on meta.
std::unique_ptr<Allocator> make_allocator(Device device, const AllocatorOptions& options);

}  // namespace sherd
