// Ops that move no numbers or only copy them. Outputs are views of the input's bytes, but for
// concat and a reshape that the strides do not allow; gradients are views too where they can be.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "autograd/tape.h"

namespace sherd {

/// The same elements, row-major, under another shape; one dim may be -1
/// any dtype; a view where the strides allow it, else a copy
/// throws usage if the number of elements differs
Variable reshape(const Variable& x, const Shape& shape);

/// y[.., i, .., j, ..] = x[.., j, .., i, ..]: dims a and b change places; a view
Variable transpose(const Variable& x, int a, int b);

/// Dim i of y is dim order[i] of x; a view
/// throws usage unless `order` has each dim once
Variable permute(const Variable& x, std::span<const int> order);
Variable permute(const Variable& x, std::initializer_list<int> order);

/// Indices [begin, end) along `dim`; a view
/// backward: a tensor like x, zero outside
/// throws usage if the range is not within the dim
Variable slice(const Variable& x, int dim, int64_t begin, int64_t end);

/// x repeated along new dims in front and dims of 1, as NumPy broadcasts; a view with strides of 0
/// x f32|f64|bf16|f16; backward sums over what was repeated
/// throws usage if x does not broadcast to `shape`
Variable expand(const Variable& x, const Shape& shape);

/// x cut along `dim` into parts of the given sizes; views
/// backward: where the gradients of the parts are adjacent slices of one tensor, in order, that
/// tensor, without a copy; else one copy. One node, so it waits for all parts
/// throws usage unless the sizes add up to the dim
std::vector<Variable> split(const Variable& x, int dim, const std::vector<int64_t>& sizes);

/// xs one behind the other along `dim`; one copy
/// equal dtypes, and shapes but for `dim`; backward gives views
/// throws usage if there is no x, or one has another dtype or shape
Variable concat(const std::vector<Variable>& xs, int dim);

}  // namespace sherd
