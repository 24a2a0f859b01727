#pragma once

#include <ostream>

#include "tensor/tensor.h"

namespace sherd {

/// Prints the values as NumPy does: nested brackets, columns aligned, six significant digits; of
/// more than 1,000 elements the first and last three of each dim. A meta tensor, or one whose bytes
/// are released, prints what it is.
std::ostream& operator<<(std::ostream& out, const Tensor& t);

}  // namespace sherd
