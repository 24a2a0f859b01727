// What the updates of all optimizers are written with. Like vec.h only NAME_cpu.cc files include
// it.
#pragma once

#include "tensor/kernels/vec_math.h"

namespace sherd {
namespace {

template <class T>
inline constexpr bool kHasMaster = sizeof(T) == 2;

/// The value to update: the master where there is one.
template <class T, class R>
[[gnu::always_inline]] inline Vec<R> load_value(const T* value, const R* master, int64_t n) {
  if constexpr (kHasMaster<T>)
    return load(master, n);
  else
    return load(value, n);
}
/// The updated value: to the master and, rounded, to the value.
template <class T, class R>
[[gnu::always_inline]] inline void store_value(T* value, R* master, Vec<R> x, int64_t n) {
  if constexpr (kHasMaster<T>) store(master, x, n);
  store(value, x, n);
}

}  // namespace
}  // namespace sherd
