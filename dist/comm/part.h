// Parts of tensors as a Cut gives them to ranks: where they are, and how they come there.
#pragma once

#include <cstddef>

#include "dist/comm/cut.h"
#include "tensor/tensor.h"

namespace sherd {

/// The first element, without asking the storage's guard; nullptr on meta. On the rank's thread
/// only.
std::byte* bytes_of(const Tensor& t);

/// Rows [begin, end) of dim 0, a view; a tensor without dims is one row.
Tensor rows_of(const Tensor& whole, int64_t begin, int64_t end);

/// Copies what `rank` has of `whole` into `part`, [outer, n, inner]; nothing where that is the same
/// place, or on meta. Both are contiguous and of one dtype.
void copy_part(const Cut& cut, int rank, const Tensor& whole, const Tensor& part);

}  // namespace sherd
