// x and y [rows, H, D] are contiguous; row r is at position r mod positions.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/isa.h"

namespace sherd::kernels {

/// Items are rows. `turn` is 1, or -1 for the way back.
template <class T>
struct Rotary {
  using A = Accumulate<T>;
  const T* x;
  const A* table;  ///< [positions, D]: cosines, then sines
  T* y;
  int64_t positions;
  int64_t heads;
  int64_t turned_heads;
  int64_t head_dim;
  A turn;
  template <Isa I>
  void run(int64_t begin, int64_t end) const;
};

}  // namespace sherd::kernels
