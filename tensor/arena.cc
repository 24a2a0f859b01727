#include "tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace sherd {

namespace {

constexpr size_t kReserve = size_t{1} << 40;  // addresses only, no memory
constexpr size_t kGrowth = size_t{8} << 20;   // a multiple of the huge page

void poison([[maybe_unused]] std::byte* data, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, bytes);
#endif
}

void unpoison([[maybe_unused]] std::byte* data, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, bytes);
#endif
}

}  // namespace

Arena::~Arena() {
  if (base_ == nullptr) return;
  unpoison(base_, committed_);
  munmap(base_, reserved_);
}

bool Arena::grow(size_t bytes) {
  if (base_ == nullptr) {
    // Under an address limit (ulimit -v, a sanitizer) a smaller reservation may still be granted.
    for (reserved_ = kReserve; reserved_ >= kGrowth; reserved_ /= 2) {
      void* p =
          mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p == MAP_FAILED) continue;
      base_ = static_cast<std::byte*>(p);
      madvise(base_, reserved_, MADV_HUGEPAGE);
      break;
    }
    if (base_ == nullptr) return false;
  }
  // The last chunk may be free already: only what it lacks is new.
  size_t tail = 0;
  if (!free_.empty()) {
    const auto& [data, size] = *free_.rbegin();
    if (data + size == base_ + committed_) tail = size;
  }
  const size_t wanted = (bytes - std::min(bytes, tail) + kGrowth - 1) / kGrowth * kGrowth;
  if (wanted > reserved_ - committed_) return false;
  if (mprotect(base_ + committed_, wanted, PROT_READ | PROT_WRITE) != 0) return false;
  std::byte* data = base_ + committed_;
  committed_ += wanted;
  ++growths_;
  add_free(data, wanted);
  return true;
}

void Arena::add_free(std::byte* data, size_t bytes) {
  poison(data, bytes);
  auto next = free_.lower_bound(data);
  if (next != free_.end() && data + bytes == next->first) {
    bytes += next->second;
    by_size_.erase({next->second, next->first});
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == data) {
      data = before->first;
      bytes += before->second;
      by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  free_.emplace(data, bytes);
  by_size_.emplace(bytes, data);
}

std::byte* Arena::allocate(size_t bytes) {
  auto fit = by_size_.lower_bound({bytes, nullptr});
  if (fit == by_size_.end()) {
    if (!grow(bytes)) return nullptr;
    fit = by_size_.lower_bound({bytes, nullptr});
  }
  const auto [size, data] = *fit;
  by_size_.erase(fit);
  free_.erase(data);
  if (size > bytes) {
    free_.emplace(data + bytes, size - bytes);
    by_size_.emplace(size - bytes, data + bytes);
  }
  used_.emplace(data, bytes);
  unpoison(data, bytes);
  return data;
}

void Arena::free(std::byte* data) {
  const auto it = used_.find(data);
  const size_t bytes = it->second;
  used_.erase(it);
  add_free(data, bytes);
}

}  // namespace sherd
