// How fast this machine multiplies matrices: what `sol` in metrics.jsonl is held against.
#pragma once

#include "tensor/dtype.h"
#include "tensor/runtime.h"

namespace sherd {

/// FLOP/s of a product [1024, 256] · [256, 512] in `dtype` on the runtime's threads, the best of
/// the tries that fit into about 15 ms; 0 on meta. Allocates and frees up to 3.5 MiB.
double measure_gemm_rate(const RuntimePtr& runtime, DType dtype);

}  // namespace sherd
