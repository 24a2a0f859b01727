#include "autograd/ops/linear_kernels.h"
#include "tensor/kernels/vec.h"

namespace sherd::kernels {

template <class T, class Sum>
template <Isa I>
void ColumnSums<T, Sum>::run(int64_t begin, int64_t end) const {
  constexpr int64_t kVectors = kColumns / kLanes<T>;
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = block * kColumns;
    const int64_t width = columns - first < kColumns ? columns - first : kColumns;
    Vec<T> total[kVectors] = {};
    for (int64_t row = 0; row < rows; row += kRun) {
      const int64_t stop = row + kRun < rows ? row + kRun : rows;
      Vec<T> run_sum[kVectors] = {};
      for (int64_t i = row; i < stop; ++i) {
        const T* p = x + i * columns + first;
        if (width == kColumns) {
          for (int64_t v = 0; v < kVectors; ++v) run_sum[v] += load(p + v * kLanes<T>);
        } else {
          for_lanes<T>(width,
                       [&](int64_t at, int64_t n) { run_sum[at / kLanes<T>] += load(p + at, n); });
        }
      }
      for (int64_t v = 0; v < kVectors; ++v) total[v] += run_sum[v];
    }
    for_lanes<Sum>(width, [&](int64_t at, int64_t n) {
      store(sums + first + at, total[at / kLanes<Sum>], n);
    });
  }
}

template void ColumnSums<float, float>::run<kIsa>(int64_t, int64_t) const;
template void ColumnSums<double, double>::run<kIsa>(int64_t, int64_t) const;
template void ColumnSums<bf16, float>::run<kIsa>(int64_t, int64_t) const;
template void ColumnSums<f16, float>::run<kIsa>(int64_t, int64_t) const;

}  // namespace sherd::kernels
