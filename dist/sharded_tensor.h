// ShardedTensor: one tensor over the ranks of a mesh: its shape, which of it this rank has, and
// that piece. It says where data is; nothing moves but in full().
// Invariant: the pieces of the shard axis make up the whole, each element once; the ranks of the
// replicate axis have the same piece.
#pragma once

#include <string>
#include <variant>

#include "dist/device_mesh.h"

namespace sherd {

/// Every rank of the shard axis has the whole.
struct Replicate {
  bool operator==(const Replicate&) const = default;
};
/// Each rank of the shard axis has a range of `dim` (even_cut): the last ranks may have less, or
/// nothing. A tensor without dims is one row, of dim 0.
struct Shard {
  int dim = 0;
  bool operator==(const Shard&) const = default;
};
using TensorPlacement = std::variant<Replicate, Shard>;

/// The ranges of `dim` of a tensor of that shape over `ranks`.
Cut cut_along(const Shape& shape, int dim, int ranks);
/// The shape of a rank's piece; [1] or [0] for a tensor without dims.
Shape piece_shape(const Shape& shape, int dim, const Cut& cut, int rank);

/// A handle, as Tensor is: copies share the piece. Used by its rank's thread; the mesh outlives it.
class ShardedTensor {
 public:
  /// Of a piece that is there: contiguous, of the piece's shape; shared, not copied. All ranks name
  /// the same shape and placement. Throws usage where there is no such dim or the piece has another
  /// shape.
  ShardedTensor(const DeviceMesh& mesh, const Shape& shape, TensorPlacement placement,
                Tensor local);
  /// Of a whole that every rank has: copies this rank's piece of it. No communication.
  static ShardedTensor distribute(const DeviceMesh& mesh, const Tensor& whole,
                                  TensorPlacement placement);

  /// Of the whole.
  const Shape& shape() const { return shape_; }
  DType dtype() const { return local_.dtype(); }
  const DeviceMesh& mesh() const { return *mesh_; }
  TensorPlacement placement() const { return placement_; }
  /// This rank's piece, and the index in the whole of its first element.
  const Tensor& local() const { return local_; }
  Dims offset() const;

  /// The same place with another piece: a moment's, beside its parameter's.
  ShardedTensor with(Tensor local) const { return {*mesh_, shape_, placement_, std::move(local)}; }

  /// The whole, which each rank gets; all ranks of the mesh call it at once, and wait for each
  /// other. A new tensor of category `gathered`, or, replicated, local() itself. Its bytes count as
  /// `checkpoint`; `name` is for errors.
  Tensor full(const std::string& name = "a sharded tensor") const;
  /// Writes local() from a whole of this shape and dtype. No communication.
  void assign(const Tensor& whole) const;

 private:
  const DeviceMesh* mesh_;
  Shape shape_;
  TensorPlacement placement_;
  Cut cut_;  // of the whole over the shard axis, where it is cut
  Tensor local_;
};

}  // namespace sherd
