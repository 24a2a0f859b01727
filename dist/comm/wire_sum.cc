#include "dist/comm/wire_sum.h"

#include <algorithm>
#include <cstring>

#include "dist/comm/tree_sum_kernels.h"

namespace sherd {

namespace {

// Sums that are made before they are rounded to halves.
constexpr int64_t kPackElements = 32 << 10;

/// Nothing where what travels is no half.
template <class Body>
void on_half(DType wire, Body&& body) {
  if (size_of(wire) == 2) on_dtype<bf16, f16>(wire, "a reduction in halves", body);
}

}  // namespace

void SummedItem::keep_halves(std::byte* whole, int rank, std::byte* floats, int64_t num) {
  const auto element = static_cast<int64_t>(size_of(wire));
  std::byte* const second = whole + cut.numel() * element;
  sum = second + cut.begin(rank) * cut.inner * element;
  halves = num == cut.numel() ? second : sum;
  widened = floats;
  num_widened = num;
}

void pack(const std::vector<SummedItem>& items, Isa isa) {
  for (const SummedItem& item : items) {
    if (item.summands == nullptr) continue;
    on_half(item.wire, [&](auto w) {
      using W = typename decltype(w)::type;
      run_at(isa, kernels::PackInPlace<W>{const_cast<std::byte*>(item.summands), 1 / item.scale}, 0,
             item.cut.numel());
    });
  }
}

std::vector<SumRange> ranges_of(const std::vector<SummedItem>& items,
                                const std::vector<char>& found, int rank, size_t room) {
  std::vector<SumRange> ranges;
  for (size_t i = 0; i < items.size(); ++i) {
    if (found[i] == 0) continue;
    const Cut& cut = items[i].cut;
    const int64_t row = cut.size(rank) * cut.inner;
    const size_t element = size_of(items[i].wire);
    int64_t most = std::max<int64_t>(row, 1);
    if (room > 0) most = std::min(most, static_cast<int64_t>(room / element));
    if (element == 2) most = std::min(most, kPackElements);
    for (int64_t o = 0; o < cut.outer; ++o)
      for (int64_t at = 0; at < row; at += most)
        ranges.push_back({i, (o * cut.dim() + cut.begin(rank)) * cut.inner + at,
                          std::min(most, row - at), o * row + at});
  }
  return ranges;
}

size_t batch_end(const std::vector<SummedItem>& items, const std::vector<SumRange>& ranges,
                 size_t first, size_t room) {
  size_t last = first;
  for (size_t bytes = 0; last < ranges.size(); ++last) {
    bytes += aligned(ranges[last].bytes(items));
    if (last > first && bytes > room) break;
  }
  return last;
}

void sum_range(const std::vector<SummedItem>& items, const SumRange& range,
               std::span<const std::byte* const> in, Isa isa, std::vector<float>& sums) {
  const SummedItem& item = items[range.item];
  const auto tree = [&]<class W>(Accumulate<W>* out, float factor) {
    run_at(isa,
           kernels::TreeSum<W>{reinterpret_cast<const W* const*>(in.data()),
                               static_cast<int>(in.size()), out, factor},
           0, range.n);
  };
  if (item.halves == nullptr)
    return on_dtype<float, double, bf16, f16>(item.wire, "a reduction", [&](auto w) {
      using Sum = Accumulate<typename decltype(w)::type>;
      tree.template operator()<typename decltype(w)::type>(
          reinterpret_cast<Sum*>(item.sum) + range.at, item.scale);
    });
  on_half(item.wire, [&](auto w) {
    using W = typename decltype(w)::type;
    sums.resize(std::max(sums.size(), static_cast<size_t>(range.n)));
    tree.template operator()<W>(sums.data(), 1);
    run_at(isa, kernels::PackInPlace<W>{sums.data(), 1}, 0, range.n);
    std::memcpy(item.sum + range.at * static_cast<int64_t>(sizeof(W)), sums.data(),
                static_cast<size_t>(range.n) * sizeof(W));
  });
}

void widen(const std::vector<SummedItem>& items, const std::vector<char>& found, Isa isa) {
  for (size_t i = 0; i < items.size(); ++i) {
    const SummedItem& item = items[i];
    if (found[i] == 0 || item.halves == nullptr) continue;
    on_half(item.wire, [&](auto w) {
      using W = typename decltype(w)::type;
      run_at(isa, kernels::Widen<W>{item.halves, item.widened, item.scale}, 0, item.num_widened);
    });
  }
}

}  // namespace sherd
