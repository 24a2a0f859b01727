// Regenerate: give one value's bytes back after forward, and make them again when backward reads
// them. Where recompute() runs a whole part of a model again, this drops what one op made: an op
// that saved the value finds it as if it had been kept.
#pragma once

#include <functional>

#include "autograd/tape.h"

namespace sherd {

/// Releases y's bytes, which no op of the forward pass may read any more; the first access in
/// backward runs `make`, unrecorded, and y has its bytes again until those that saved it are gone.
/// make() gives y's shape and dtype, and the same bits, as our kernels do; what it holds goes once
/// it has run. Nothing happens where nothing is recorded.
/// y: the whole of its storage. throws usage for a part of one, and if make() gives something else
void regenerate(const Variable& y, std::function<Variable()> make);

}  // namespace sherd
