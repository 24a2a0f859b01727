// Initial values: a function of (seed, parameter's name, element's index in the whole parameter)
// and of nothing else, so that any rank can make any rows of any parameter by itself.
#pragma once

#include <cstdint>

#include "nn/module.h"
#include "tensor/random.h"

namespace sherd {

/// Fills `rows` with rows [begin, begin + rows.size(0)) of a parameter that starts as `init` says:
/// the very values that the whole parameter has there. `key` is initial_key(seed, name).
/// rows [n, ...] contiguous; half-precision values are those of f32, rounded
void fill_initial(const Tensor& rows, const Init& init, RandomKey key, int64_t begin = 0);

/// What the draws of one parameter depend on.
RandomKey initial_key(uint64_t seed, std::string_view name);

/// Names every parameter of the module and gives it its initial value; a shared one is drawn by
/// its first name.
void init_parameters(Module& module, uint64_t seed);

}  // namespace sherd
