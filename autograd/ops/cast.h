#pragma once

#include "autograd/tape.h"

namespace sherd {

/// y = x in another floating dtype, rounded to nearest even; x itself if it has that dtype
/// any shape and strides → y contiguous
/// saves nothing; dx is dy in x's dtype
/// throws usage for a dtype that is not floating
Variable cast(const Variable& x, DType dtype);

}  // namespace sherd
