#include "tensor/random.h"

#include <algorithm>
#include <cmath>

namespace sherd {

namespace {

constexpr int64_t kBlock = 16384;  // elements, a multiple of 4

uint64_t mixed(uint64_t z) {  // splitmix64's finalizer
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

RandomKey derived(RandomKey key, uint64_t what, uint64_t kind) {
  const uint64_t inner = mixed(what + kind * 0x9e3779b97f4a7c15u);
  return {key.seed, mixed(key.stream * 0xd1342543de82ef95u + inner + 1)};
}

/// ln x for x in (0, 1): x = 2^n m, m in [√½, √2), s = (m - 1) / (m + 1), ln m = 2 (s + s³/3 + …).
double natural_log(double x) {
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const auto bits = __builtin_bit_cast(int64_t, x);
  const int64_t n = (bits - kRootHalf) >> 52;
  const auto m = __builtin_bit_cast(double, bits - (n << 52));
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double p = 1.0 / 21;
  for (int k = 19; k >= 1; k -= 2) p = p * s2 + 1.0 / k;
  return static_cast<double>(n) * 0.6931471805599453 + 2 * s * p;
}

/// sin a and cos a for |a| <= π/4, by Taylor.
void sine_cosine(double a, double& sine, double& cosine) {
  const double x = a * a;
  double s = -1.0 / 1307674368000.0;  // 15!
  s = s * x + 1.0 / 6227020800.0;
  s = s * x - 1.0 / 39916800.0;
  s = s * x + 1.0 / 362880.0;
  s = s * x - 1.0 / 5040.0;
  s = s * x + 1.0 / 120.0;
  s = s * x - 1.0 / 6.0;
  sine = a + a * x * s;
  double c = 1.0 / 20922789888000.0;  // 16!
  c = c * x - 1.0 / 87178291200.0;
  c = c * x + 1.0 / 479001600.0;
  c = c * x - 1.0 / 3628800.0;
  c = c * x + 1.0 / 40320.0;
  c = c * x - 1.0 / 720.0;
  c = c * x + 1.0 / 24.0;
  c = c * x - 0.5;
  cosine = 1 + x * c;
}

/// Two standard normals of two words. The angle is π/2 (q + f - ½): q the upper two bits of b, f
/// the rest.
void normal_pair(uint32_t a, uint32_t b, double* z) {
  const double radius = std::sqrt(-2 * natural_log((a + 0.5) * 0x1p-32));
  const double f = (b & 0x3fffffffu) * 0x1p-30;
  double s;
  double c;
  sine_cosine((f - 0.5) * 1.5707963267948966, s, c);
  const uint32_t q = b >> 30;
  const double x = q & 1 ? -s : c;
  const double y = q & 1 ? c : s;
  z[0] = radius * (q & 2 ? -x : x);
  z[1] = radius * (q & 2 ? -y : y);
}

template <class T>
T rounded(double x) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

/// t[i] = shift + scale · draw(words of the block of first + i)[…]; draw makes four values of a
/// block.
template <class Draw>
void fill_random(const Tensor& t, RandomKey key, int64_t first, double shift, double scale,
                 const char* name, const Draw& draw) {
  check(first >= 0, "the first index of random numbers is negative:", first);
  const Tensor to = t.is_contiguous() ? t : Tensor::empty_like(t);
  on_dtype<float, double, bf16, f16>(t.dtype(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const p = to.data<T>();
    const int64_t n = to.numel();
    if (p == nullptr) return;
    // Blocks begin at multiples of kBlock of the global index, so each draw of four is made once
    // but at the two ends of a part.
    const int64_t first_block = first / kBlock;
    const int64_t blocks = n == 0 ? 0 : (first + n - 1) / kBlock - first_block + 1;
    t.runtime()->pool().run(blocks, [&](int64_t b) {
      const int64_t begin = std::max(first, (first_block + b) * kBlock);
      const int64_t end = std::min(first + n, (first_block + b + 1) * kBlock);
      for (int64_t four = begin / 4; four * 4 < end; ++four) {
        double values[4];
        draw(random_words(key, static_cast<uint64_t>(four)), values);
        const int64_t to_i = std::min(end, four * 4 + 4);
        for (int64_t i = std::max(begin, four * 4); i < to_i; ++i)
          p[i - first] = rounded<T>(shift + scale * values[i - four * 4]);
      }
    });
  });
  if (t.is_contiguous())
    t.storage()->bump_version();
  else
    t.copy_from(to);
}

}  // namespace

RandomKey RandomKey::derive(std::string_view name) const {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return derived(*this, hash, 1);
}

RandomKey RandomKey::derive(uint64_t number) const { return derived(*this, number, 2); }

void fill_uniform(const Tensor& t, RandomKey key, double low, double high, int64_t first) {
  fill_random(t, key, first, low, high - low, "fill_uniform",
              [](const std::array<uint32_t, 4>& words, double* values) {
                for (size_t i = 0; i < 4; ++i) values[i] = (words[i] >> 8) * 0x1p-24;
              });
}

void fill_normal(const Tensor& t, RandomKey key, double mean, double deviation, int64_t first) {
  fill_random(t, key, first, mean, deviation, "fill_normal",
              [](const std::array<uint32_t, 4>& words, double* values) {
                normal_pair(words[0], words[1], values);
                normal_pair(words[2], words[3], values + 2);
              });
}

}  // namespace sherd
