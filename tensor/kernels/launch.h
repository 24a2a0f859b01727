// Running a kernel: a struct of pointers and sizes whose `template <Isa I> void run(int64_t begin,
// int64_t end) const` does the items [begin, end). Its source, NAME_cpu.cc, is compiled once per
// instruction set and ends in an explicit instantiation for kIsa.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/isa.h"
#include "tensor/runtime.h"

namespace sherd {

/// Runs `kernel` over [0, items) in blocks of `block` items on the runtime's threads. Blocks depend
/// on the shape alone, so results do not depend on the number of threads. On meta nothing runs.
template <class Kernel>
void launch(Runtime& runtime, const Kernel& kernel, int64_t items, int64_t block) {
  if (runtime.device().is_meta() || items <= 0) return;
  block = std::max<int64_t>(block, 1);
  runtime.pool().run((items + block - 1) / block, [&](int64_t i) {
    run_at(runtime.isa(), kernel, i * block, std::min(items, (i + 1) * block));
  });
}

/// A block size that makes about `elements` of work when one item costs `per_item` elements.
inline int64_t block_of(int64_t per_item, int64_t elements = 16384) {
  return std::max<int64_t>(1, elements / std::max<int64_t>(per_item, 1));
}

}  // namespace sherd
