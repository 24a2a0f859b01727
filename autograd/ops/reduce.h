// Reductions. Kernels: tensor/kernels/reduce.h.
#pragma once

#include <vector>

#include "autograd/tape.h"

namespace sherd {

/// Whether reduced dims stay, with size 1.
enum class Keep { no, yes };

/// y = Σ x over `dims` (negative from the back; none: all)
/// x f32|f64|bf16|f16, any strides → y of its dtype
/// saves nothing; sums in f32, in an order that depends on the shape alone; dx is a view of dy
/// throws usage if a dim is out of range or named twice
Variable sum(const Variable& x, const std::vector<int>& dims = {}, Keep keep = Keep::no);

/// The same divided by the number of elements that are added; NaN where there are none.
Variable mean(const Variable& x, const std::vector<int>& dims = {}, Keep keep = Keep::no);

/// y = the largest of x over `dims`, NaN if there is one
/// saves the handles of x and y; elements that share the maximum share the gradient evenly
/// throws usage if there are no elements to choose from
Variable max(const Variable& x, const std::vector<int>& dims = {}, Keep keep = Keep::no);
inline Variable max(const Variable& x, int dim) { return max(x, std::vector<int>{dim}); }

}  // namespace sherd
