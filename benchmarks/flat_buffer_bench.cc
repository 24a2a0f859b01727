// A unit's parameters in one call each where they lie, beside one flat buffer for the unit: copy
// in, one collective, copy out. For units of GPT-2 124M and for 1,000 tiny parameters, f32.
//   bazel run //benchmarks:flat_buffer_bench                                        thread ranks
//   tools/run_mpi.sh 2 out/bin/benchmarks/flat_buffer_bench                         processes
#include <cstdio>
#include <cstring>
#include <map>

#include "analysis/comm_bench.h"
#include "analysis/workload.h"
#include "dist/comm/mpi_launch.h"
#include "dist/comm/mpi_ranks.h"
#include "dist/comm/thread_ranks.h"
#include "dist/shard_plan.h"

namespace sherd {
namespace {

struct UnitShapes {
  std::string name;
  std::vector<Shape> shapes;
};

std::vector<UnitShapes> units() {
  const auto meta = Runtime::create({.device = kMeta});
  Tape tape(meta);
  Gpt2 model(tape, workload("W3").model);
  std::map<std::string, std::vector<Shape>> by_unit;
  for (const auto& p : parameters(model)) by_unit[unit_by_block(p)].push_back(p.parameter.shape());
  return {{"GPT-2 124M block", by_unit.at("blocks.0")},
          {"GPT-2 124M root", by_unit.at("")},
          {"1,000 of 100", std::vector<Shape>(1000, Shape{100})}};
}

void copy(const Tensor& from, const Tensor& to) {
  std::memcpy(to.raw(), from.raw(), static_cast<size_t>(from.numel()) * sizeof(float));
}

/// The same values as parameters of their own and as flat buffers, in which rank r's parts of all
/// parameters lie one after the other.
class Unit {
 public:
  Unit(Rank& rank, const std::vector<Shape>& shapes) : rank_(rank) {
    std::vector<int64_t> starts = {0};
    for (int r = 0; r < rank.size; ++r) {
      int64_t n = 0;
      for (const Shape& s : shapes) n += cut_of(s).numel(r);
      starts.push_back(starts.back() + n);
    }
    flat_cut_ = {1, 1, starts};
    flat_ = zeros(starts.back());
    flat_part_ = zeros(flat_cut_.size(rank.rank));
    for (const Shape& s : shapes)
      items_.push_back({zeros(cut_of(s).numel(rank.rank)), zeros(s.numel()), cut_of(s)});
  }

  std::vector<CommOp> ops() {
    Communicator& comm = rank_.comm;
    const double f = 4.0 * static_cast<double>(flat_.numel() - flat_part_.numel());
    const CallTag tag{.unit = "unit", .where = RunOn::caller};
    return {
        {"gather, grouped", f, [=, this, &comm] { comm.all_gather(items_, tag).event().wait(); }},
        {"gather, flat", f,
         [=, this, &comm] {
           int64_t at = 0;
           for (const auto& item : items_)
             copy(item.local, piece(flat_part_, at, item.local.numel()));
           comm.all_gather({{flat_part_, flat_, flat_cut_}}, tag).event().wait();
           each_piece([](const Tensor& flat, const Tensor& own) { copy(flat, own); });
         }},
        {"reduce, grouped", f,
         [=, this, &comm] { comm.reduce_scatter(items_, {}, tag).event().wait(); }},
        {"reduce, flat", f, [=, this, &comm] {
           each_piece([](const Tensor& flat, const Tensor& own) { copy(own, flat); });
           comm.reduce_scatter({{flat_part_, flat_, flat_cut_}}, {}, tag).event().wait();
         }}};
  }

 private:
  Cut cut_of(const Shape& s) const { return even_cut(1, s[0], s.columns(1), rank_.size); }
  Tensor zeros(int64_t n) const { return Tensor::full(rank_.runtime, {n}, 0); }
  static Tensor piece(const Tensor& of, int64_t& at, int64_t n) {
    at += n;
    return of.slice(0, at - n, at);
  }
  /// Each rank's rows of each parameter: where they lie in the flat buffer, and in their own.
  template <class Body>
  void each_piece(const Body& body) const {
    int64_t at = 0;
    for (int r = 0; r < rank_.size; ++r)
      for (const auto& item : items_) {
        int64_t own = item.cut.begin(r) * item.cut.inner;
        const int64_t n = item.cut.numel(r);
        const Tensor flat = piece(flat_, at, n);
        body(flat, piece(item.whole, own, n));
      }
  }

  Rank& rank_;
  std::vector<CutTensor> items_;
  Tensor flat_, flat_part_;
  Cut flat_cut_;
};

void measure(Rank& rank) {
  for (const UnitShapes& shapes : units()) {
    Unit unit(rank, shapes.shapes);
    const auto times = time_in_turns(rank, unit.ops(), 15);
    if (rank.rank != 0) continue;
    std::printf("%s, %zu parameters, %d ranks\n", shapes.name.c_str(), shapes.shapes.size(),
                rank.size);
    for (size_t i = 0; i < times.size(); ++i) {
      std::printf("  %-16s %9.1f us (least %9.1f)", times[i].op.c_str(), times[i].median_us,
                  times[i].min_us);
      if (i % 2 == 1) std::printf("  %.2f of grouped", times[i].median_us / times[i - 1].median_us);
      std::printf("\n");
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace sherd

int main() {
  if (sherd::mpirun_ranks())
    sherd::run_mpi_ranks({}, sherd::measure);
  else
    sherd::run_thread_ranks({.ranks = 2}, sherd::measure);
}
