// What a rank computes with: its device, allocator, threads and instruction set. Every tensor's
// storage holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/isa.h"
#include "tensor/thread_pool.h"

namespace sherd {

struct RuntimeOptions {
  Device device = kCpu;
  int threads = 1;                        ///< of this rank, the caller included
  std::optional<Isa> isa = std::nullopt;  ///< none: the best of this machine
  int64_t memory_limit = 0;               ///< bytes; 0: none
  bool poison = false;                    ///< for tests: see AllocatorOptions
};

class Runtime;
using RuntimePtr = std::shared_ptr<Runtime>;

/// Used by one thread, the rank's, but for the allocator, which is thread-safe.
class Runtime : public std::enable_shared_from_this<Runtime> {
 public:
  explicit Runtime(const RuntimeOptions& options)
      : device_(options.device),
        isa_(options.isa.value_or(default_isa())),
        allocator_(make_allocator(options.device,
                                  {.limit = options.memory_limit, .poison = options.poison})),
        pool_(options.device.is_meta() ? 1 : options.threads) {}

  static RuntimePtr create(const RuntimeOptions& options = {}) {
    return std::make_shared<Runtime>(options);
  }

  Device device() const { return device_; }
  Isa isa() const { return isa_; }
  Allocator& allocator() { return *allocator_; }
  ThreadPool& pool() { return pool_; }
  /// The category of new tensors; see CategoryScope.
  Category category() const { return category_; }
  /// Whether new parameters get their bytes at once; see DeferParameters.
  bool defers_parameters() const { return defers_parameters_; }

 private:
  friend class CategoryScope;
  friend class DeferParameters;

  const Device device_;
  const Isa isa_;
  const std::unique_ptr<Allocator> allocator_;
  ThreadPool pool_;
  Category category_ = Category::other;
  bool defers_parameters_ = false;
};

/// New tensors of `runtime` count in `category` while this lives.
class CategoryScope {
 public:
  CategoryScope(Runtime& runtime, Category category)
      : runtime_(runtime), before_(runtime.category_) {
    runtime.category_ = category;
  }
  ~CategoryScope() { runtime_.category_ = before_; }
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;

 private:
  Runtime& runtime_;
  const Category before_;
};

/// Parameters made while this lives have no bytes: sharding gives each rank its own part of them,
/// so that no rank ever holds the whole model.
class DeferParameters {
 public:
  explicit DeferParameters(Runtime& runtime) : runtime_(runtime) {
    runtime_.defers_parameters_ = true;
  }
  ~DeferParameters() { runtime_.defers_parameters_ = false; }
  DeferParameters(const DeferParameters&) = delete;
  DeferParameters& operator=(const DeferParameters&) = delete;

 private:
  Runtime& runtime_;
};

}  // namespace sherd
