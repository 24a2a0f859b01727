#include "tensor/storage.h"

#include <utility>

#include "base/error.h"

namespace sherd {

Storage::Storage(RuntimePtr runtime, size_t bytes, Category category, std::string owner,
                 Allocation allocation)
    : runtime_(std::move(runtime)), bytes_(bytes), category_(category), owner_(std::move(owner)) {
  if (allocation == Allocation::now) allocate();
}

Storage::Storage(RuntimePtr runtime, void* data, size_t bytes, std::shared_ptr<void> keep_alive,
                 std::string owner)
    : runtime_(std::move(runtime)),
      bytes_(bytes),
      category_(Category::other),
      owner_(std::move(owner)),
      keep_alive_(std::move(keep_alive)),
      data_(static_cast<std::byte*>(data)),
      foreign_(true),
      resident_(true) {}

Storage::~Storage() {
  if (resident_ && !foreign_) runtime_->allocator().free(data_, bytes_, category_);
}

void Storage::allocate() {
  if (resident_) return;
  data_ = runtime_->allocator().allocate(bytes_, category_);
  resident_ = true;
}

void Storage::release() {
  check(!foreign_, "memory that belongs to the caller cannot be released:", owner_);
  if (!resident_) return;
  runtime_->allocator().free(data_, bytes_, category_);
  data_ = nullptr;
  resident_ = false;
}

void Storage::take_bytes(Storage& other) {
  check(!resident_ && other.resident_ && !other.foreign_ && other.bytes_ == bytes_ &&
            other.runtime_ == runtime_,
        "a storage takes the bytes of another of its size and runtime, while it has none:", owner_,
        bytes_, other.bytes_);
  other.recategorize(category_);
  data_ = std::exchange(other.data_, nullptr);
  other.resident_ = false;
  resident_ = true;
}

std::byte* Storage::data() const {
  if (guard_ != nullptr) guard_->before_access(*this);
  return unguarded_data();
}

std::byte* Storage::unguarded_data() const {
  check(resident_, "the bytes of this tensor are released, gather it first:",
        owner_.empty() ? "(unnamed)" : owner_);
  return data_;
}

void Storage::recategorize(Category category) {
  if (resident_ && !foreign_) runtime_->allocator().recategorize(bytes_, category_, category);
  category_ = category;
}

}  // namespace sherd
