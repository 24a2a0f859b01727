#pragma once

#include "tensor/tensor.h"

namespace sherd {

/// t[i] = value for each element of a tensor of any strides. Does not bump the version.
void fill(const Tensor& t, double value);

}  // namespace sherd
