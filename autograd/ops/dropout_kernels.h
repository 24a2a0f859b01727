#pragma once

#include <cstdint>

#include "tensor/isa.h"

namespace sherd::kernels {

/// y[i] = word(i) >= threshold ? x[i] · factor : 0, where word is Philox4x32-10 of (seed, stream,
/// i) as tensor/random.h says. Items are elements in fours; `count` elements in all. y may be x.
template <class T>
struct Dropout {
  const T* x;
  T* y;
  int64_t count;
  uint64_t seed;
  uint64_t stream;
  uint32_t threshold;
  double factor;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
