// An op of one's own: a declaration here, a function in snake.cc. Nothing registers it.
#pragma once

#include "autograd/tape.h"

/// y = x + sin²(a x) / a, by channel
/// x [..., C] f32|f64, a [C] same dtype → y like x
/// saves x and a; the gradient of a sums over rows in order, in f32 (f64 for f64)
/// throws usage if a is not [C] of x's dtype
/// Ziyin et al. 2020, "Neural Networks Fail to Learn Periodic Functions and How to Fix It", eq. 3
sherd::Variable snake(const sherd::Variable& x, const sherd::Variable& a);
