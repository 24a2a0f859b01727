#include "dist/comm/tree_sum_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

namespace {

/// The first n elements at `bytes`, zeros behind them. Bytes that hold values of two types in turn
/// are only copied, so that no compiler takes a read and a write of them for unrelated.
template <class T>
[[gnu::always_inline]] inline Vec<T> load_bytes(const void* bytes, int64_t n) {
  T x[kLanes<T>] = {};
  if (n == kLanes<T>)
    std::memcpy(static_cast<void*>(x), bytes, sizeof x);
  else
    std::memcpy(static_cast<void*>(x), bytes, static_cast<size_t>(n) * sizeof(T));
  return load(x);
}
template <class T>
[[gnu::always_inline]] inline void store_bytes(void* bytes, Vec<T> v, int64_t n) {
  T x[kLanes<T>];
  store(x, v);
  if (n == kLanes<T>)
    std::memcpy(bytes, static_cast<const void*>(x), sizeof x);
  else
    std::memcpy(bytes, static_cast<const void*>(x), static_cast<size_t>(n) * sizeof(T));
}

/// x rounded to W.
template <class W>
[[gnu::always_inline]] inline Vec<W> rounded(Vec<W> x) {
  if constexpr (sizeof(W) == sizeof(sherd::Accumulate<W>)) {
    return x;
  } else {
    W narrow[kLanes<W>];
    store(narrow, x);
    return load(narrow);
  }
}

constexpr int64_t kBlock = 512;  // elements that are summed together; they stay in L1
constexpr int kBuffers = 32;     // one for each level of the tree, and one for its leaves

/// Summands [i, i + n) as they are summed: where they lie, or in the first n of `memory`.
template <class W>
const sherd::Accumulate<W>* leaf(const W* in, int64_t i, int64_t n, sherd::Accumulate<W>* memory) {
  using Sum = sherd::Accumulate<W>;
  if constexpr (std::is_same_v<W, Sum>)
    if (in != nullptr) return in + i;
  for_lanes<Sum>(
      n, [&](int64_t k, int64_t lanes) __attribute__((always_inline)) {
        store(memory + k, in == nullptr ? Vec<W>{} : load(in + i + k, lanes), lanes);
      });
  return memory;
}

/// What the left part of `count` ranks is.
inline int left_of(int count) {
  int left = 1;
  while (2 * left < count) left *= 2;
  return left;
}

/// Elements [i, i + n) of the sum over ranks [first, first + count), perhaps in `memory`.
template <class W>
const sherd::Accumulate<W>* tree(const W* const* in, int first, int count, int64_t i, int64_t n,
                                 sherd::Accumulate<W>* memory) {
  using Sum = sherd::Accumulate<W>;
  if (count == 1) return leaf(in[first], i, n, memory);
  const int left = left_of(count);
  const Sum* const a = tree<W>(in, first, left, i, n, memory);
  const Sum* const b = tree<W>(in, first + left, count - left, i, n, memory + kBlock);
  for_lanes<Sum>(
      n, [&](int64_t k, int64_t lanes) __attribute__((always_inline)) {
        store(memory + k, load(a + k, lanes) + load(b + k, lanes), lanes);
      });
  return memory;
}

}  // namespace

template <class W>
template <Isa I>
void TreeSum<W>::run(int64_t begin, int64_t end) const {
  Sum memory[kBuffers * kBlock];
  const int left = left_of(count);
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t n = end - i < kBlock ? end - i : kBlock;
    const auto finish = [&](const auto& sum_at) __attribute__((always_inline)) {
      for_lanes<Sum>(
          n, [&](int64_t k, int64_t lanes) __attribute__((always_inline)) {
            Vec<W> sum = rounded<W>(sum_at(k, lanes));
            if constexpr (sizeof(W) < sizeof(Sum)) sum = sum * factor;
            store(out + i + k, sum, lanes);
          });
    };
    if (count == 1) {
      const Sum* const a = leaf(in[0], i, n, memory);
      finish([&](int64_t k, int64_t lanes)
                 __attribute__((always_inline)) { return load(a + k, lanes); });
      continue;
    }
    // The last sum goes straight to its place.
    const Sum* const a = tree<W>(in, 0, left, i, n, memory);
    const Sum* const b = tree<W>(in, left, count - left, i, n, memory + kBlock);
    finish([&](int64_t k, int64_t lanes)
               __attribute__((always_inline)) { return load(a + k, lanes) + load(b + k, lanes); });
  }
}

template <class W>
template <Isa I>
void PackInPlace<W>::run(int64_t begin, int64_t end) const {
  for_lanes<float>(
      end - begin, [&](int64_t k, int64_t n) __attribute__((always_inline)) {
        const int64_t i = begin + k;
        const Vec<W> x = load_bytes<float>(static_cast<std::byte*>(data) + i * 4, n);
        store_bytes<W>(static_cast<std::byte*>(data) + i * 2, x * factor, n);
      });
}

template <class W>
template <Isa I>
void Widen<W>::run(int64_t begin, int64_t end) const {
  for_lanes<float>(
      end - begin, [&](int64_t k, int64_t n) __attribute__((always_inline)) {
        const int64_t i = begin + k;
        const Vec<W> x = load_bytes<W>(static_cast<const std::byte*>(in) + i * 2, n);
        store_bytes<float>(static_cast<std::byte*>(out) + i * 4, x * factor, n);
      });
}

template void TreeSum<float>::run<kIsa>(int64_t, int64_t) const;
template void TreeSum<double>::run<kIsa>(int64_t, int64_t) const;
template void TreeSum<bf16>::run<kIsa>(int64_t, int64_t) const;
template void TreeSum<f16>::run<kIsa>(int64_t, int64_t) const;
template void PackInPlace<bf16>::run<kIsa>(int64_t, int64_t) const;
template void PackInPlace<f16>::run<kIsa>(int64_t, int64_t) const;
template void Widen<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Widen<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
