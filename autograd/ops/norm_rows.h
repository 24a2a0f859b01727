// What the ops that normalise rows have in common.
#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/variable.h"
#include "base/error.h"

namespace sherd::detail {

/// Rows whose sums for a weight's gradient are formed one after another: by shape alone. At most
/// 256, to keep the sums accurate; about 64 parts, for threads and because they must stay small.
inline int64_t rows_per_part(int64_t rows) {
  return std::clamp<int64_t>((rows + 63) / 64, 32, 256);
}

/// Throws usage unless p is [C] of x's dtype, or empty.
inline void check_norm_parameter(const Variable& p, const Variable& x, const char* name) {
  if (!p) return;
  check(p.shape() == Shape{x.size(-1)} && p.dtype() == x.dtype(),
        "the parameter must be [C] of x's dtype:", name, describe(p.value()), "for x",
        describe(x.value()));
}

template <class T>
T* data_or_null(const Tensor& t) {
  return t ? t.data<T>() : nullptr;
}

}  // namespace sherd::detail
