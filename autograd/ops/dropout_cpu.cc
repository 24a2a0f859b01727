#include "autograd/ops/dropout_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

namespace {

using U32x8 = By8<uint32_t>;

constexpr uint64_t kUpTo7[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/// high and low words of a · b.
[[gnu::always_inline]] inline void multiply(U32x8 a, uint32_t b, U32x8& high, U32x8& low) {
  const U64x8 product = convert<U64x8>(a) * b;
  high = convert<U32x8>(product >> 32);
  low = convert<U32x8>(product);
}

/// The words of eight blocks, from block `first`: words[4 · j + k] is word k of block first + j.
[[gnu::always_inline]] inline void words_of(uint64_t first, uint64_t seed, uint64_t stream,
                                            uint32_t* words) {
  const U64x8 blocks = load_bits<U64x8>(kUpTo7) + first;
  U32x8 c0 = convert<U32x8>(blocks);
  U32x8 c1 = convert<U32x8>(blocks >> 32);
  U32x8 c2 = U32x8{} + static_cast<uint32_t>(stream);
  U32x8 c3 = U32x8{} + static_cast<uint32_t>(stream >> 32);
  auto k0 = static_cast<uint32_t>(seed);
  auto k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    U32x8 high0;
    U32x8 low0;
    U32x8 high2;
    U32x8 low2;
    multiply(c0, 0xD2511F53u, high0, low0);
    multiply(c2, 0xCD9E8D57u, high2, low2);
    c0 = high2 ^ c1 ^ k0;
    c1 = low2;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  uint32_t c[4][8];
  store_bits(c[0], c0);
  store_bits(c[1], c1);
  store_bits(c[2], c2);
  store_bits(c[3], c3);
  for (int j = 0; j < 8; ++j)
    for (int k = 0; k < 4; ++k) words[4 * j + k] = c[k][j];
}

}  // namespace

template <class T>
template <Isa I>
void Dropout<T>::run(int64_t begin, int64_t end) const {
  using A = sherd::Accumulate<T>;
  const A by = static_cast<A>(factor);
  for (int64_t block = begin; block < end; block += 8) {
    uint32_t words[32];
    words_of(static_cast<uint64_t>(block), seed, stream, words);
    A keep[32];
    for (int j = 0; j < 32; ++j) keep[j] = words[j] >= threshold ? by : A{0};
    const int64_t first = 4 * block;
    int64_t last = 4 * (block + 8 < end ? block + 8 : end);
    last = last < count ? last : count;
    for (int64_t i = first; i < last; i += kLanes<T>) {
      const int64_t n = last - i < kLanes<T> ? last - i : kLanes<T>;
      const Vec<T> k = load(keep + (i - first));
      // Not a product with 0, which would keep a NaN.
      store(y + i, select_equal(k, Vec<T>{}, Vec<T>{}, load(x + i, n) * k), n);
    }
  }
}

template void Dropout<float>::run<kIsa>(int64_t, int64_t) const;
template void Dropout<double>::run<kIsa>(int64_t, int64_t) const;
template void Dropout<bf16>::run<kIsa>(int64_t, int64_t) const;
template void Dropout<f16>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
