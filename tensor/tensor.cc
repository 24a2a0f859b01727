#include "tensor/tensor.h"

#include <optional>
#include <utility>

#include "tensor/kernels/copy.h"
#include "tensor/kernels/fill.h"

namespace sherd {

namespace {

/// Strides under which `from`'s elements, in row-major order, have the shape `to`, of as many
/// elements; none if only a copy can. Dims of `from` that lie one behind the other form a run; each
/// run is cut into dims of `to`.
std::optional<Strides> strides_as(const Shape& from, const Strides& strides, const Shape& to) {
  Strides out = to.contiguous_strides();
  if (to.numel() == 0) return out;
  int j = to.size() - 1;
  int64_t run = 1;         // elements of the run so far
  int64_t run_stride = 1;  // of its last dim
  int64_t taken = 1;       // elements of the run that dims of `to` cover
  for (int i = from.size() - 1; i >= 0; --i) {
    if (from[i] == 1) continue;
    if (run == 1) run_stride = strides[i];
    run *= from[i];
    const int next = [&] {
      int k = i - 1;
      while (k >= 0 && from[k] == 1) --k;
      return k;
    }();
    if (next >= 0 && strides[next] == run * run_stride) continue;
    for (; j >= 0 && (taken < run || to[j] == 1); --j) {
      out[j] = taken * run_stride;
      taken *= to[j];
    }
    if (taken != run) return std::nullopt;
    run = taken = 1;
  }
  return out;
}

}  // namespace

Tensor Tensor::empty(const RuntimePtr& runtime, const Shape& shape, DType dtype, std::string owner,
                     Allocation allocation) {
  Tensor t;
  const auto bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  t.storage_ =
      std::make_shared<Storage>(runtime, bytes, runtime->category(), std::move(owner), allocation);
  t.shape_ = shape;
  t.strides_ = shape.contiguous_strides();
  t.dtype_ = dtype;
  return t;
}

Tensor Tensor::zeros(const RuntimePtr& runtime, const Shape& shape, DType dtype) {
  return full(runtime, shape, 0, dtype);
}

Tensor Tensor::full(const RuntimePtr& runtime, const Shape& shape, double value, DType dtype) {
  Tensor t = empty(runtime, shape, dtype);
  t.fill(value);
  return t;
}

Tensor Tensor::over(const RuntimePtr& runtime, const Shape& shape, DType dtype, void* data,
                    std::shared_ptr<void> keep_alive, std::string owner) {
  Tensor t;
  const auto bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  t.storage_ =
      std::make_shared<Storage>(runtime, data, bytes, std::move(keep_alive), std::move(owner));
  t.shape_ = shape;
  t.strides_ = shape.contiguous_strides();
  t.dtype_ = dtype;
  return t;
}

Tensor Tensor::strided(const RuntimePtr& runtime, const Shape& shape, const Strides& strides,
                       DType dtype, void* data) {
  check(shape.size() == strides.size(), "a stride for each dim is wanted:", shape, "and", strides);
  Tensor t = over(runtime, shape, dtype, data, nullptr);
  t.strides_ = strides;
  return t;
}

bool Tensor::is_contiguous() const {
  int64_t expected = 1;
  for (int i = dims() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != expected) return numel() == 0;
    expected *= shape_[i];
  }
  return true;
}

bool Tensor::owns_all_bytes() const {
  return storage_.use_count() == 1 && !storage_->foreign() && is_contiguous() &&
         static_cast<size_t>(numel()) * size_of(dtype_) == storage_->bytes();
}

void* Tensor::raw() const {
  check(storage_ != nullptr, "this tensor is an empty handle");
  std::byte* bytes = storage_->data();
  return bytes == nullptr ? nullptr : bytes + static_cast<size_t>(offset_) * size_of(dtype_);
}

double Tensor::item() const {
  check(numel() == 1, "item() wants one element, the tensor is", shape_);
  return to_vector<double>()[0];
}

/// `shape` with its -1, if any, in numbers.
Shape Tensor::completed(const Shape& shape) const {
  Shape to = shape;
  int open = -1;
  for (int i = 0; i < to.size(); ++i) {
    if (to[i] != -1) continue;
    check(open < 0, "view takes one dim of -1 at most:", shape);
    open = i;
    to[i] = 1;
  }
  if (open >= 0) {
    const int64_t known = to.numel();
    to[open] = known == 0 ? 0 : numel() / known;
  }
  check(to.numel() == numel(), "view has another number of elements:", shape_, "as", shape);
  return to;
}

Tensor Tensor::view(const Shape& shape) const {
  Tensor t = *this;
  t.shape_ = completed(shape);
  const auto strides = strides_as(shape_, strides_, t.shape_);
  check(strides.has_value(),
        "view wants a contiguous tensor, or strides that allow the shape; call contiguous() first:",
        shape_, "strides", strides_, "as", shape);
  t.strides_ = *strides;
  return t;
}

bool Tensor::views_as(const Shape& shape) const {
  return strides_as(shape_, strides_, completed(shape)).has_value();
}

Tensor Tensor::permute(std::span<const int> order) const {
  check(static_cast<int>(order.size()) == dims(), "permute wants each dim of", shape_, "once");
  Tensor t = *this;
  unsigned seen = 0;
  int i = 0;
  for (const int dim : order) {
    const int d = shape_.resolve(dim);
    check((seen & (1u << d)) == 0, "permute names a dim twice:", d);
    seen |= 1u << d;
    t.shape_[i] = shape_[d];
    t.strides_[i] = strides_[d];
    ++i;
  }
  return t;
}

Tensor Tensor::transpose(int a, int b) const {
  a = shape_.resolve(a);
  b = shape_.resolve(b);
  Tensor t = *this;
  std::swap(t.shape_[a], t.shape_[b]);
  std::swap(t.strides_[a], t.strides_[b]);
  return t;
}

Tensor Tensor::slice(int dim, int64_t begin, int64_t end) const {
  dim = shape_.resolve(dim);
  check(begin >= 0 && begin <= end && end <= shape_[dim], "slice is out of range:", begin, "to",
        end, "of dim", dim, "of", shape_);
  Tensor t = *this;
  t.offset_ += begin * strides_[dim];
  t.shape_[dim] = end - begin;
  return t;
}

Tensor Tensor::expand(const Shape& shape) const {
  check(shape.numel() >= 0 && broadcast(shape_, shape) == shape, "cannot expand", shape_, "to",
        shape);
  Tensor t = *this;
  t.shape_ = shape;
  t.strides_ = shape.contiguous_strides();
  const int extra = shape.size() - dims();
  for (int i = 0; i < shape.size(); ++i)
    t.strides_[i] = i < extra || shape_[i - extra] == 1 ? 0 : strides_[i - extra];
  return t;
}

Tensor Tensor::joined(std::span<const Tensor> parts, int dim) {
  Tensor whole;
  for (const Tensor& part : parts) {
    if (!part) return {};
    if (!whole) {
      whole = part;
      dim = part.shape_.resolve(dim);
      continue;
    }
    Shape of_part = part.shape_;
    if (part.storage_ != whole.storage_ || part.dtype_ != whole.dtype_ ||
        part.dims() != whole.dims() || part.strides_ != whole.strides_ ||
        part.offset_ != whole.offset_ + whole.shape_[dim] * whole.strides_[dim])
      return {};
    of_part[dim] = whole.shape_[dim];
    if (of_part != whole.shape_) return {};
    whole.shape_[dim] += part.shape_[dim];
  }
  return whole;
}

Tensor Tensor::clone() const {
  Tensor t = empty(runtime(), shape_, dtype_);
  copy(*this, t);
  return t;
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor t = empty(runtime(), shape_, dtype);
  copy(*this, t);
  return t;
}

void Tensor::copy_from(const Tensor& source) const {
  copy(source.shape() == shape_ ? source : source.expand(shape_), *this);
  storage_->bump_version();
}

void Tensor::fill(double value) const {
  sherd::fill(*this, value);
  storage_->bump_version();
}

std::string describe(const Tensor& t) { return detail::concat(t.dtype(), ' ', t.shape()); }

}  // namespace sherd
