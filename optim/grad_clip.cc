#include "optim/grad_clip.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <vector>

#include "optim/exact_sum.h"
#include "optim/grad_clip_kernels.h"
#include "optim/pieces.h"

namespace sherd {

namespace {

constexpr int64_t kSegment = 65536;  // columns; a row of many millions is still many tasks

/// A gradient as a matrix of rows (dim 0), each cut into segments.
struct Segments {
  const Slot* slot;
  int64_t columns;
  int64_t width;  ///< of a segment; the last of a row may be narrower
  int64_t per_row;
  int64_t count;
};

std::vector<Segments> segments_of(std::span<const Slot> slots) {
  std::vector<Segments> all;
  for (const Slot& slot : slots) {
    if (!slot.grad) continue;
    const Context in("gradient of ", slot.name);
    check(slot.grad.is_contiguous(), "is not contiguous");
    const Shape& shape = slot.grad.shape();
    const int64_t rows = shape.empty() ? 1 : shape[0];
    const int64_t columns = shape.empty() ? 1 : shape.columns(1);
    const int64_t per_row = (columns + kSegment - 1) / kSegment;
    all.push_back({&slot, columns, std::min(columns, kSegment), per_row, rows * per_row});
  }
  return all;
}

/// A running maximum with the interface of ExactSum.
class ExactMax {
 public:
  void add(double x) { max_ = std::max(max_, x); }
  void add(const ExactMax& other) { add(other.max_); }
  double value() const { return max_; }

 private:
  double max_ = 0;
};

/// The segments of all gradients that Kernel makes one number of, put together in a Total.
/// `spoilt[i]` is set where a number of all[i] is not finite.
template <template <class> class Kernel, class Total>
Total reduce(std::span<const Segments> all, std::span<std::atomic<bool>> spoilt) {
  Total total;
  if (all.empty()) return total;
  Runtime& runtime = *all[0].slot->grad.runtime();
  // Pieces are cut by elements, so that tasks are of one size; a segment is of the piece in which
  // it begins.
  std::vector<int64_t> sizes;
  for (const auto& s : all) sizes.push_back(s.count * s.width);
  std::mutex mutex;
  for_pieces(runtime, sizes, [&](size_t i, int64_t begin, int64_t end) {
    const Segments& s = all[i];
    const int64_t last = (end + s.width - 1) / s.width;
    Total part;
    std::array<double, 512> results;
    for (int64_t at = (begin + s.width - 1) / s.width; at < last;) {
      const int64_t to = std::min<int64_t>(last, at + static_cast<int64_t>(results.size()));
      on_dtype<float, double>(s.slot->grad.dtype(), "grad_norm", [&](auto tag) {
        using T = typename decltype(tag)::type;
        const Kernel<T> kernel{s.slot->grad.data<T>(), s.columns, kSegment, s.per_row,
                               results.data()};
        run_at(runtime.isa(), kernel, at, to);
      });
      for (int64_t k = 0; k < to - at; ++k) {
        const double result = results[static_cast<size_t>(k)];
        if (!std::isfinite(result)) spoilt[i].store(true, std::memory_order_relaxed);
        part.add(result);
      }
      at = to;
    }
    const std::lock_guard lock(mutex);
    total.add(part);
  });
  return total;
}

double exchanged(ExactSum sum, const NormExchange& exchange) {
  if (exchange.sum) exchange.sum(sum.words());
  return std::sqrt(sum.value());
}

double exchanged(const ExactMax& max, const NormExchange& exchange) {
  // The bits of doubles ≥ 0 are ordered as the doubles are.
  auto bits = std::bit_cast<int64_t>(max.value());
  if (exchange.max) exchange.max({&bits, 1});
  return std::bit_cast<double>(bits);
}

}  // namespace

GradNorm grad_norm(std::span<const Slot> slots, double scale, NormKind kind,
                   const NormExchange& exchange) {
  if (!std::isfinite(scale) || scale < 0)
    fail_as(ErrorKind::numeric, "the scale of gradients must be finite and ≥ 0, got", scale);
  const auto all = segments_of(slots);
  std::vector<std::atomic<bool>> spoilt(all.size());
  GradNorm result;
  result.norm =
      scale * (kind == NormKind::two
                   ? exchanged(reduce<kernels::SegmentSquares, ExactSum>(all, spoilt), exchange)
                   : exchanged(reduce<kernels::SegmentMaxima, ExactMax>(all, spoilt), exchange));
  for (size_t i = all.size(); i-- > 0;)
    if (spoilt[i].load(std::memory_order_relaxed)) result.not_finite = all[i].slot->name;
  return result;
}

double clip_factor(double norm, double max_norm) {
  if (!std::isfinite(norm))
    fail_as(ErrorKind::numeric, "the norm of the gradients is not finite:", norm);
  check(max_norm >= 0, "clip_norm must be ≥ 0, got", max_norm);
  return max_norm == 0 ? 1 : std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace sherd
