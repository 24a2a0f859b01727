// Storage: bytes that can be released and come back while every view of them lives on.
// Invariant: a view never sees other bytes than its storage's; reading released bytes throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tensor/runtime.h"

namespace sherd {

class Storage;

/// Who is told before bytes are used: sharding gathers them there.
class StorageGuard {
 public:
  virtual ~StorageGuard() = default;
  /// Called on the rank's thread by each access to `storage`'s bytes; after it they must be there.
  virtual void before_access(const Storage& storage) = 0;
};

/// When a storage gets its bytes.
enum class Allocation { now, later };

/// Used by the rank's thread; allocate and release may be called from a stream's worker that
/// borrowed it.
class Storage {
 public:
  /// `bytes` of `runtime`'s device; allocated at once, or released until allocate(). `owner` names
  /// it in errors ("blocks.3.mlp.up.weight").
  Storage(RuntimePtr runtime, size_t bytes, Category category, std::string owner,
          Allocation allocation = Allocation::now);
  /// Foreign memory: `data` stays valid as long as `keep_alive` lives. It is not counted, and never
  /// released.
  Storage(RuntimePtr runtime, void* data, size_t bytes, std::shared_ptr<void> keep_alive,
          std::string owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// Gets the bytes back, uninitialised; nothing happens when they are here.
  void allocate();
  /// Gives the bytes back to the allocator; nothing happens when they are gone. Throws usage on
  /// foreign memory.
  void release();
  bool resident() const { return resident_; }
  /// Whether the bytes belong to the caller.
  bool foreign() const { return foreign_; }

  /// Throws usage, naming the owner, when the bytes are released. nullptr on meta.
  std::byte* data() const;
  /// The same without asking the guard: for the guard, which fills the bytes.
  std::byte* unguarded_data() const;
  /// `guard` outlives this storage, or is taken away with nullptr.
  void set_guard(StorageGuard* guard) { guard_ = guard; }
  /// The same with a guard that lives as long as this storage.
  void own_guard(std::unique_ptr<StorageGuard> guard) {
    owned_guard_ = std::move(guard);
    guard_ = owned_guard_.get();
  }
  /// Takes the bytes of `other`, which has as many and is left without. Throws usage unless these
  /// are released and those are there, of the same runtime and not foreign.
  void take_bytes(Storage& other);
  size_t bytes() const { return bytes_; }
  const RuntimePtr& runtime() const { return runtime_; }
  Category category() const { return category_; }
  void recategorize(Category category);
  const std::string& owner() const { return owner_; }
  void set_owner(std::string owner) { owner_ = std::move(owner); }

  /// Counts in-place writes: what autograd saved is checked against it.
  uint64_t version() const { return version_; }
  void bump_version() { ++version_; }

 private:
  const RuntimePtr runtime_;
  const size_t bytes_;
  Category category_;
  std::string owner_;
  std::shared_ptr<void> keep_alive_;
  std::byte* data_ = nullptr;
  bool foreign_ = false;
  bool resident_ = false;
  uint64_t version_ = 0;
  StorageGuard* guard_ = nullptr;
  std::unique_ptr<StorageGuard> owned_guard_;
};

}  // namespace sherd
