// The single-threaded bodies of gemm(); each computes the whole of `g`, batch 1, on the calling
// thread.
#pragma once

#include "tensor/gemm.h"

namespace sherd::detail {

/// f32 in and out.
void gemm_onednn(const Gemm& g);
/// f32 or f64 in and out: the fallback and the oracle.
void gemm_eigen(const Gemm& g);

}  // namespace sherd::detail
