// Ops that act on each element alone. Their formulas and derivatives are rows of
// elementwise_functors.h.
#pragma once

#include "autograd/ops/activation.h"
#include "autograd/tape.h"

namespace sherd {

/// y = f(x), f as Activation says; none gives x itself
/// x any shape, f32|f64|bf16|f16 → y like x
/// saves the handle of x; halves are computed in f32
/// throws usage for a dtype that is not floating
Variable activate(const Variable& x, Activation f);

/// y = e^x, 0 where that is below the normal range; shapes, memory and errors as activate.
Variable exp(const Variable& x);
/// y = ln x, -infinity below the normal range, NaN below 0.
Variable log(const Variable& x);
/// y = √x
Variable sqrt(const Variable& x);
/// y = x²
Variable square(const Variable& x);

}  // namespace sherd
