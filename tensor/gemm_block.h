// The single-threaded bodies of gemm(); each computes the whole of `g`, batch 1, on the calling
// thread.
#pragma once

#include "tensor/gemm.h"

namespace sherd::detail {

/// f32 in and out.
void gemm_onednn(const Gemm& g);
/// f32 or f64 in and out: the fallback and the oracle.
void gemm_eigen(const Gemm& g);
/// bf16 or f16 in: pieces of the operands are widened, multiplied in f32 and rounded once. They
/// take at most 1.7 MiB of `runtime` while this runs; on meta that is all that happens. Measured on
/// a CPU with AVX512_BF16 at half the rate of f32 (Intel without AMX): twice as fast as oneDNN's
/// bf16.
void gemm_halves(Runtime& runtime, const Gemm& g);

}  // namespace sherd::detail
