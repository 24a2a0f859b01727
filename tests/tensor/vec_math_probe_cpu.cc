#include "tensor/kernels/vec_math.h"
#include "tests/tensor/vec_math_probe_kernels.h"

namespace sherd::kernels {

namespace {

template <class V>
[[gnu::always_inline]] inline V value(Probe f, V x) {
  V cdf;
  V density;
  switch (f) {
    case Probe::exp:
      return exp(x);
    case Probe::log:
      return log(x);
    case Probe::tanh:
      return tanh(x);
    case Probe::erf:
      return erf(x);
    case Probe::normal_cdf:
      normal_cdf(x, cdf, density);
      return cdf;
    case Probe::normal_density:
      normal_cdf(x, cdf, density);
      return density;
    case Probe::sqrt:
      return sqrt(x);
    case Probe::reciprocal:
      return reciprocal(x);
  }
  return x;
}

}  // namespace

template <class T>
template <Isa I>
void VecMathProbe<T>::run(int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; i += kLanes<T>) store(y + i, value(f, load(x + i)));
}

template void VecMathProbe<float>::run<kIsa>(int64_t, int64_t) const;
template void VecMathProbe<double>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
