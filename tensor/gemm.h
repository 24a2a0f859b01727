// Matrix products of row-major matrices: the one place where large products are computed.
// Invariant: work is cut into blocks of rows or columns by shape alone, never over the summed dim
// and never by thread count, so a result has the same bits with any number of threads.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"
#include "tensor/runtime.h"

namespace sherd {

/// c = op(a) · op(b) [+ bias] [+ c], `batch` times. op(a) is [m, k]; stored [m, k], or [k, m] when
/// transposed. Leading dims (ld*) and strides are in elements.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;

  const void* a = nullptr;
  int64_t lda = 0;
  bool transpose_a = false;

  const void* b = nullptr;
  int64_t ldb = 0;
  bool transpose_b = false;

  void* c = nullptr;
  int64_t ldc = 0;
  /// Adds to what c holds.
  bool accumulate = false;
  /// [n] of dtype `in`, added to each row; nullptr: none. Not together with accumulate.
  const void* bias = nullptr;

  /// Of a, b and bias: f32, f64, bf16 or f16.
  DType in = DType::f32;
  /// Of c: `in`, or f32 when `in` is bf16 or f16. Sums are in f32 (f64 for f64) and rounded once.
  DType out = DType::f32;

  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};

/// Runs on the runtime's threads; nothing happens on meta or when m, n or batch is 0 (k = 0 gives
/// zeros, or bias). Throws usage for other dtypes.
void gemm(Runtime& runtime, const Gemm& g);

/// Products of the whole process use no instructions beyond `most`, so that their bits and their
/// speed are those of a lesser machine. oneDNN chooses once: before its first product, or false.
bool limit_gemm_isa(Isa most);

}  // namespace sherd
