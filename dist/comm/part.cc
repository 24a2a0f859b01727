#include "dist/comm/part.h"

#include <cstring>

namespace sherd {

std::byte* bytes_of(const Tensor& t) {
  return t.storage()->unguarded_data() + static_cast<size_t>(t.offset()) * size_of(t.dtype());
}

Tensor rows_of(const Tensor& whole, int64_t begin, int64_t end) {
  return (whole.dims() == 0 ? whole.view({1}) : whole).slice(0, begin, end);
}

void copy_part(const Cut& cut, int rank, const Tensor& whole, const Tensor& part) {
  if (whole.device().is_meta()) return;
  const auto element = static_cast<int64_t>(size_of(whole.dtype()));
  const int64_t row = cut.size(rank) * cut.inner * element;
  for (int64_t o = 0; o < cut.outer && row > 0; ++o) {
    const std::byte* const from =
        bytes_of(whole) + (o * cut.dim() + cut.begin(rank)) * cut.inner * element;
    std::byte* const to = bytes_of(part) + o * row;
    if (from != to) std::memcpy(to, from, static_cast<size_t>(row));
  }
}

}  // namespace sherd
