// Tensor: a cheap handle on Storage with a shape, strides and an offset. It knows nothing of
// gradients. Copying a Tensor shares its bytes; clone() copies them. Views share bytes without
// copying.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/runtime.h"
#include "tensor/shape.h"
#include "tensor/storage.h"

namespace sherd {

/// Not thread-safe; a rank's thread owns its tensors.
class Tensor {
 public:
  /// An empty handle; only operator bool and assignment are allowed on it.
  Tensor() = default;

  // --- making tensors: contiguous, in the runtime's current category
  /// Uninitialised.
  static Tensor empty(const RuntimePtr& runtime, const Shape& shape, DType dtype = DType::f32,
                      std::string owner = {}, Allocation allocation = Allocation::now);
  static Tensor zeros(const RuntimePtr& runtime, const Shape& shape, DType dtype = DType::f32);
  static Tensor full(const RuntimePtr& runtime, const Shape& shape, double value,
                     DType dtype = DType::f32);
  /// Row-major values; throws usage if their count is not the shape's.
  template <class T>
  static Tensor from(const RuntimePtr& runtime, const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor from(const RuntimePtr& runtime, const Shape& shape, const std::vector<T>& values) {
    return from(runtime, shape, std::span<const T>(values));
  }
  /// A view of foreign memory, contiguous, alive as long as `keep_alive`.
  static Tensor over(const RuntimePtr& runtime, const Shape& shape, DType dtype, void* data,
                     std::shared_ptr<void> keep_alive, std::string owner = {});
  /// The same with strides in elements; `data` is the first element and outlives the tensor.
  static Tensor strided(const RuntimePtr& runtime, const Shape& shape, const Strides& strides,
                        DType dtype, void* data);
  /// Uninitialised, of the same runtime (and dtype).
  static Tensor empty_like(const Tensor& t) { return empty(t.runtime(), t.shape(), t.dtype()); }

  // --- what it is
  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  int dims() const { return shape_.size(); }
  /// Size along `dim`; negative counts from the back.
  int64_t size(int dim) const { return shape_[shape_.resolve(dim)]; }
  int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  Device device() const { return runtime()->device(); }
  const RuntimePtr& runtime() const { return storage_->runtime(); }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  int64_t offset() const { return offset_; }
  bool is_contiguous() const;
  /// True when no other handle shares the bytes, they are not foreign, and the tensor covers them
  /// all.
  bool owns_all_bytes() const;

  // --- bytes
  /// First element; T must be the dtype. nullptr on meta. Throws usage when the bytes are released.
  template <class T>
  T* data() const {
    check(dtype_of<T> == dtype_, "tensor holds another dtype: asked for", dtype_of<T>, "of",
          dtype_);
    return static_cast<T*>(raw());
  }
  void* raw() const;
  /// The one element as a number; throws usage unless numel is 1, or on meta.
  double item() const;
  /// Every element in row-major order, converted to T.
  template <class T>
  std::vector<T> to_vector() const;

  // --- views, no copies
  /// The same elements under another shape; one dim may be -1. Throws usage if the strides do not
  /// allow it: a dim may be cut, and dims that lie one behind the other may be merged.
  Tensor view(const Shape& shape) const;
  /// True when view(shape) would not throw for the strides' sake.
  bool views_as(const Shape& shape) const;
  Tensor permute(std::span<const int> order) const;
  Tensor permute(std::initializer_list<int> order) const {
    return permute(std::span(order.begin(), order.size()));
  }
  Tensor transpose(int a, int b) const;
  /// Indices [begin, end) along `dim`.
  Tensor slice(int dim, int64_t begin, int64_t end) const;
  /// Broadcast to `shape` with strides of 0.
  Tensor expand(const Shape& shape) const;
  /// The tensor that `parts` are slices of along `dim`, in order and without gaps; an empty handle
  /// if they are not.
  static Tensor joined(std::span<const Tensor> parts, int dim);

  // --- copies
  Tensor clone() const;
  /// Itself when contiguous, else a contiguous copy.
  Tensor contiguous() const;
  /// Itself when it has that dtype, else a converted contiguous copy.
  Tensor to(DType dtype) const;
  /// Copies (and converts) the elements of `source`, which broadcasts to this shape; bumps the
  /// version.
  void copy_from(const Tensor& source) const;
  void fill(double value) const;

 private:
  Shape completed(const Shape& shape) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Strides strides_;
  int64_t offset_ = 0;  // elements
  DType dtype_ = DType::f32;
};

/// "f32 [2, 3]"
std::string describe(const Tensor& t);

template <class T>
Tensor Tensor::from(const RuntimePtr& runtime, const Shape& shape, std::span<const T> values) {
  check(static_cast<int64_t>(values.size()) == shape.numel(), "shape", shape, "does not hold",
        values.size(), "values");
  Tensor t = empty(runtime, shape, dtype_of<T>);
  if (t.raw() != nullptr) std::copy(values.begin(), values.end(), t.data<T>());
  return t;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check(!device().is_meta(), "a meta tensor has no values");
  const Tensor t = to(dtype_of<T>).contiguous();
  const T* p = t.data<T>();
  return std::vector<T>(p, p + t.numel());
}

}  // namespace sherd
