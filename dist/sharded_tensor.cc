#include "dist/sharded_tensor.h"

#include <utility>

#include "base/error.h"
#include "dist/comm/part.h"

namespace sherd {

namespace {

void check_dim(const Shape& shape, int dim) {
  check(dim >= 0 && dim < (shape.empty() ? 1 : shape.size()),
        "a sharded tensor is cut along a dim that it does not have: dim", dim, "of", shape);
}

}  // namespace

Cut cut_along(const Shape& shape, int dim, int ranks) {
  if (shape.empty()) return even_cut(1, 1, 1, ranks);
  return even_cut(shape.rows(dim), shape[dim], shape.columns(dim + 1), ranks);
}

Shape piece_shape(const Shape& shape, int dim, const Cut& cut, int rank) {
  if (shape.empty()) return {cut.size(rank)};
  Shape piece = shape;
  piece[dim] = cut.size(rank);
  return piece;
}

ShardedTensor::ShardedTensor(const DeviceMesh& mesh, const Shape& shape, TensorPlacement placement,
                             Tensor local)
    : mesh_(&mesh), shape_(shape), placement_(placement), local_(std::move(local)) {
  const int rank = mesh.shard().rank();
  Shape expected = shape;
  if (const auto* shard = std::get_if<Shard>(&placement)) {
    check_dim(shape, shard->dim);
    cut_ = cut_along(shape, shard->dim, mesh.shards());
    expected = piece_shape(shape, shard->dim, cut_, rank);
  }
  check(local_.shape() == expected && local_.is_contiguous(), "the piece of a sharded tensor",
        shape, "on rank", rank, "of", mesh.shards(), "is contiguous and", expected, "but got",
        describe(local_));
}

ShardedTensor ShardedTensor::distribute(const DeviceMesh& mesh, const Tensor& whole,
                                        TensorPlacement placement) {
  Shape piece = whole.shape();
  if (const auto* shard = std::get_if<Shard>(&placement)) {
    check_dim(piece, shard->dim);
    piece = piece_shape(piece, shard->dim, cut_along(piece, shard->dim, mesh.shards()),
                        mesh.shard().rank());
  }
  const ShardedTensor result(mesh, whole.shape(), placement,
                             Tensor::empty(whole.runtime(), piece, whole.dtype()));
  result.assign(whole);
  return result;
}

Dims ShardedTensor::offset() const {
  Dims offset;
  for (int d = 0; d < shape_.size(); ++d) offset.push_back(0);
  const auto* shard = std::get_if<Shard>(&placement_);
  if (shard != nullptr && !shape_.empty()) offset[shard->dim] = cut_.begin(mesh_->shard().rank());
  return offset;
}

Tensor ShardedTensor::full(const std::string& name) const {
  if (std::holds_alternative<Replicate>(placement_)) return local_;
  const CategoryScope scope(*local_.runtime(), Category::gathered);
  const Tensor whole = Tensor::empty(local_.runtime(), shape_, local_.dtype(), name);
  mesh_->shard()
      .all_gather({{local_, whole, cut_}}, {name, Traffic::checkpoint, RunOn::caller})
      .event()
      .wait();
  return whole;
}

void ShardedTensor::assign(const Tensor& whole) const {
  check(whole.shape() == shape_ && whole.dtype() == local_.dtype(),
        "a sharded tensor is written from a whole like it: expected", local_.dtype(), shape_,
        "but got", describe(whole));
  if (std::holds_alternative<Replicate>(placement_)) {
    local_.copy_from(whole);
    return;
  }
  copy_part(cut_, mesh_->shard().rank(), whole.contiguous(), local_);
  local_.storage()->bump_version();
}

}  // namespace sherd
