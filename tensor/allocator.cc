#include "tensor/allocator.h"

#include <cstring>

#include "base/error.h"
#include "tensor/arena.h"

namespace sherd {

namespace {

class CpuAllocator final : public Allocator {
 public:
  using Allocator::Allocator;

 private:
  std::byte* take(size_t bytes) override {
    std::byte* data = arena_.allocate(bytes);
    system_allocations_ = arena_.growths();
    return data;
  }
  void give(std::byte* data, size_t) override { arena_.free(data); }

  Arena arena_;
};

class MetaAllocator final : public Allocator {
 public:
  using Allocator::Allocator;

 private:
  std::byte* take(size_t) override { return nullptr; }
  void give(std::byte*, size_t) override {}
};

/// All ones: NaN in f64, f32, f16 and bf16.
void poison(std::byte* data, size_t bytes) {
  if (data != nullptr) std::memset(data, 0xff, bytes);
}

std::string mib(int64_t bytes) { return std::to_string((bytes + (1 << 19)) >> 20) + " MiB"; }

}  // namespace

const char* name_of(Category category) {
  constexpr const char* names[] = {"params", "gathered", "grads",   "optimizer", "activations",
                                   "logits", "comm",     "staging", "other"};
  return names[static_cast<int>(category)];
}

std::byte* Allocator::allocate(size_t bytes, Category category) {
  if (bytes == 0) return nullptr;
  const int64_t size = rounded(bytes);
  std::byte* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (limit() > 0 && live_ + size > limit())
      fail_as(ErrorKind::memory, "out of memory: the limit run.memory_limit is", mib(limit()),
              ", live", breakdown(), ", wanted", mib(size),
              "more; a smaller train.micro_batch or train.recompute = \"block\" needs less");
    data = take(static_cast<size_t>(size));
    if (data == nullptr && typeid(*this) != typeid(MetaAllocator))
      fail_as(ErrorKind::memory, "out of memory: the system refused", mib(size), "; live",
              breakdown());
    count(size, category);
  }
  if (options_.poison) poison(data, static_cast<size_t>(size));
  return data;
}

void Allocator::free(std::byte* data, size_t bytes, Category category) {
  if (bytes == 0) return;
  const int64_t size = rounded(bytes);
  if (options_.poison) poison(data, static_cast<size_t>(size));
  const std::lock_guard lock(mutex_);
  live_ -= size;
  by_category_[static_cast<size_t>(category)] -= size;
  give(data, static_cast<size_t>(size));
}

void Allocator::recategorize(size_t bytes, Category from, Category to) {
  const std::lock_guard lock(mutex_);
  const int64_t size = bytes == 0 ? 0 : rounded(bytes);
  by_category_[static_cast<size_t>(from)] -= size;
  by_category_[static_cast<size_t>(to)] += size;
}

int64_t Allocator::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

CategoryBytes Allocator::live_by_category() const {
  const std::lock_guard lock(mutex_);
  return by_category_;
}

MemoryPeak Allocator::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = MemoryPeak{live_, by_category_, detail::context_frames()};
}

int64_t Allocator::system_allocations() const {
  const std::lock_guard lock(mutex_);
  return system_allocations_;
}

void Allocator::count(int64_t bytes, Category category) {
  live_ += bytes;
  by_category_[static_cast<size_t>(category)] += bytes;
  if (live_ > peak_.bytes) peak_ = MemoryPeak{live_, by_category_, detail::context_frames()};
}

std::string Allocator::breakdown() const {
  std::string text = mib(live_) + " (";
  for (int c = 0; c < kCategories; ++c) {
    const int64_t bytes = by_category_[static_cast<size_t>(c)];
    if (bytes == 0) continue;
    if (text.back() != '(') text += ", ";
    text += std::string(name_of(static_cast<Category>(c))) + " " + mib(bytes);
  }
  return text + ")";
}

std::unique_ptr<Allocator> make_allocator(Device device, const AllocatorOptions& options) {
  switch (device.type) {
    case DeviceType::cpu:
      return std::make_unique<CpuAllocator>(options);
    case DeviceType::meta:
      return std::make_unique<MetaAllocator>(options);
    case DeviceType::cuda:
      break;
  }
  fail_as(ErrorKind::device,
          "this build has no CUDA; build with --config=cuda or use device = \"cpu\"");
}

}  // namespace sherd
