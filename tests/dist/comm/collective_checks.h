// Every collective against a plain loop, on whatever ranks a Communicator has. All ranks know what
// all ranks hold, so each computes alone what must come out, bit for bit. They throw instead of
// using Catch2, which is not for several threads, nor for programs under mpirun.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/comm/communicator.h"
#include "tensor/tensor.h"

namespace sherd::test {

class CollectiveChecks {
 public:
  CollectiveChecks(Communicator& comm, RuntimePtr runtime)
      : comm_(comm), runtime_(std::move(runtime)), me_(comm.rank()), N_(comm.size()) {}

  void all() {
    all_gather();
    resting();
    many();
    for (const DType wire : {DType::f32, DType::bf16, DType::f16, DType::f64})
      for (const bool in_place : {false, true}) reduce_scatter(wire, in_place);
    for (const DType wire : {DType::f32, DType::bf16, DType::f16, DType::f64}) all_reduce(wire);
    broadcast();
    all_to_all();
    words();
  }

 private:
  /// No rows, one, fewer rows than ranks, odd ones, columns, ranges of any size, more than is
  /// summed or read at once.
  std::vector<Cut> cuts() const {
    std::vector<Cut> all = {even_cut(1, 0, 3, N_), even_cut(1, 1, 1, N_),  even_cut(1, 3, 2, N_),
                            even_cut(1, 7, 1, N_), even_cut(1, 13, 5, N_), even_cut(3, 10, 2, N_)};
    Cut large{1, 1, {0}};
    for (int r = 0; r < N_; ++r) large.starts.push_back(r + 1);
    large.starts.back() += 70000;
    all.push_back(large);
    Cut uneven{2, 3, {0}};
    for (int r = 0; r < N_; ++r) uneven.starts.push_back(uneven.starts.back() + (r * 3 + 1) % 4);
    all.push_back(uneven);
    return all;
  }
  static bool first_dim(const Cut& cut) { return cut.outer == 1; }

  /// What `rank` holds at element i of tensor `item`: no half, exact in f32.
  static double value(int rank, size_t item, int64_t i) {
    uint64_t h = (static_cast<uint64_t>(i) * 8191 + item * 131 + static_cast<uint64_t>(rank)) *
                 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    return (static_cast<double>(h % 2000001) - 1e6) / 524288;
  }
  static double rounded(double x, DType t) {
    const auto f = static_cast<float>(x);
    if (t == DType::bf16) return static_cast<float>(bf16(f));
    if (t == DType::f16) return static_cast<float>(f16(f));
    return t == DType::f32 ? f : x;
  }
  /// The sum over ranks as the contract says, by recursion.
  template <class Sum>
  static Sum tree(std::span<const Sum> x) {
    if (x.size() == 1) return x[0];
    const size_t left = std::bit_floor(x.size() - 1);
    return tree(x.first(left)) + tree(x.subspan(left));
  }
  template <class Sum>
  double summed(size_t item, int64_t i, DType wire) const {
    std::array<Sum, 64> x;
    for (int r = 0; r < N_; ++r)
      x[static_cast<size_t>(r)] =
          static_cast<Sum>(absent(r, item) ? 0 : rounded(value(r, item, i), wire));
    return rounded(tree(std::span<const Sum>(x.data(), static_cast<size_t>(N_))), wire);
  }
  double sum(size_t item, int64_t i, DType wire) const {
    return wire == DType::f64 ? summed<double>(item, i, wire) : summed<float>(item, i, wire);
  }
  /// Some ranks have nothing to add; for one tensor nobody has.
  static bool absent(int rank, size_t item) {
    return item == 4 || (item == 1 && rank == 0) || (item == 5 && rank % 2 == 1);
  }
  bool all_absent(size_t item) const {
    for (int r = 0; r < N_; ++r)
      if (!absent(r, item)) return false;
    return true;
  }

  template <class Value>
  Tensor made(int64_t n, DType dtype, const Value& value_of) const {
    std::vector<double> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(value_of(i));
    return Tensor::from(runtime_, {n}, x).to(dtype);
  }
  Tensor empty(int64_t n, DType dtype) const { return Tensor::full(runtime_, {n}, 77, dtype); }

  /// Where element i of rank r's part is in the whole.
  static int64_t in_whole(const Cut& cut, int r, int64_t i) {
    const int64_t row = cut.size(r) * cut.inner;
    return i / row * cut.dim() * cut.inner + cut.begin(r) * cut.inner + i % row;
  }

  template <class Want>
  void expect(const char* what, size_t item, const Tensor& got, const Want& want) const {
    const auto values = got.to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i)
      check(values[i] == want(static_cast<int64_t>(i)), what, "tensor", item, "element", i, "of",
            values.size(), "on rank", me_, "of", N_, "got", values[i], "want",
            want(static_cast<int64_t>(i)));
  }
  int64_t received(Traffic traffic) const { return comm_.received()[static_cast<size_t>(traffic)]; }
  /// Exactly these bytes came from others since `before`.
  void expect_bytes(const char* what, Traffic traffic, int64_t before, int64_t want) const {
    check(received(traffic) - before == want, what, "on rank", me_, "of", N_, "received",
          received(traffic) - before, "bytes, want", want);
  }
  static void done(const Work& work) { work.event().wait(); }

  void all_gather() {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i64}) {
      std::vector<CutTensor> items;
      int64_t bytes = 0;
      const auto held = [&](int r, size_t item, int64_t i) {
        return dtype == DType::i64 ? static_cast<double>(r * 1000 + i)
                                   : rounded(value(r, item, i), dtype);
      };
      for (const Cut& cut : cuts()) {
        const size_t item = items.size();
        const int64_t n = cut.numel(me_);
        CutTensor next{made(n, dtype, [&](int64_t i) { return held(me_, item, i); }),
                       empty(cut.numel(), dtype), cut};
        if (first_dim(cut) && item % 2 == 1) {
          const int64_t begin = cut.begin(me_) * cut.inner;
          const Tensor place = next.whole.slice(0, begin, begin + n);
          place.copy_from(next.local);
          next.local = place;
        }
        items.push_back(next);
        bytes += (cut.numel() - n) * static_cast<int64_t>(size_of(dtype));
      }
      const int64_t before = received(Traffic::all_gather);
      done(comm_.all_gather(items, {"gathered", Traffic::all_gather}));
      expect_bytes("all_gather", Traffic::all_gather, before, bytes);
      for (size_t item = 0; item < items.size(); ++item) expect_gathered(items[item], item, held);
    }
  }
  template <class Held>
  void expect_gathered(const CutTensor& item, size_t index, const Held& held) const {
    std::vector<double> want(static_cast<size_t>(item.cut.numel()));
    for (int r = 0; r < N_; ++r)
      for (int64_t i = 0; i < item.cut.numel(r); ++i)
        want[static_cast<size_t>(in_whole(item.cut, r, i))] = held(r, index, i);
    expect("all_gather", index, item.whole,
           [&](int64_t i) { return want[static_cast<size_t>(i)]; });
  }

  void resting() {
    const Cut cut = even_cut(1, 11, 3, N_);
    const Tensor local = empty(cut.numel(me_), DType::f32);
    const Resting resting = comm_.rest({local});
    for (size_t step = 0; step < 5; ++step) {
      comm_.barrier({"written"});
      local.copy_from(
          made(local.numel(), DType::f32, [&](int64_t i) { return value(me_, step, i); }));
      comm_.barrier({"written"});
      const CutTensor item{local, empty(cut.numel(), DType::f32), cut};
      const int64_t before = received(Traffic::all_gather);
      done(comm_.all_gather({item}, {"resting", Traffic::all_gather}, {}, resting));
      expect_bytes("resting all_gather", Traffic::all_gather, before,
                   (cut.numel() - cut.numel(me_)) * 4);
      expect_gathered(item, step, value);
    }
    comm_.barrier({"read"});
  }

  /// More tensors than the system copies in one call.
  void many() {
    const Cut cut = even_cut(1, 2 * N_ - 1, 1, N_);
    std::vector<CutTensor> gathered, reduced;
    for (size_t item = 0; item < 1500; ++item) {
      gathered.push_back(
          {made(cut.numel(me_), DType::f32, [&](int64_t i) { return value(me_, item, i); }),
           empty(cut.numel(), DType::f32), cut});
      reduced.push_back(
          {empty(cut.numel(me_), DType::f32),
           made(cut.numel(), DType::f32, [&](int64_t i) { return value(me_, item, i); }), cut,
           absent(me_, item)});
    }
    const CallTag tag{.unit = "many", .where = RunOn::caller};
    done(comm_.all_gather(gathered, tag));
    done(comm_.reduce_scatter(reduced, {}, tag));
    for (size_t item = 0; item < gathered.size(); ++item) {
      expect_gathered(gathered[item], item, value);
      if (all_absent(item)) continue;
      expect("reduce_scatter of many", item, reduced[item].local,
             [&](int64_t i) { return sum(item, in_whole(cut, me_, i), DType::f32); });
    }
  }

  /// What one rank receives of n elements of `item`: from each that has some.
  int64_t summand_bytes(size_t item, int64_t n, DType wire) const {
    int64_t bytes = 0;
    for (int r = 0; r < N_; ++r)
      if (r != me_ && !absent(r, item)) bytes += n * static_cast<int64_t>(size_of(wire));
    return bytes;
  }

  /// The result is a tensor of its own, or lies in the whole.
  void reduce_scatter(DType wire, bool result_in_whole) {
    const DType dtype = wire == DType::f64 ? DType::f64 : DType::f32;
    std::vector<CutTensor> items;
    std::vector<bool> used;
    int64_t bytes = 0;
    for (const Cut& cut : cuts()) {
      const size_t item = items.size();
      CutTensor next{empty(cut.numel(me_), dtype),
                     made(cut.numel(), dtype, [&](int64_t i) { return value(me_, item, i); }), cut,
                     absent(me_, item)};
      if (result_in_whole && first_dim(cut))
        next.local = next.whole.slice(0, cut.begin(me_) * cut.inner,
                                      cut.begin(me_) * cut.inner + cut.numel(me_));
      else if (next.absent && item == 1)
        next.whole = {};
      items.push_back(next);
      bytes += summand_bytes(item, cut.numel(me_), wire);
    }
    const auto present = std::make_shared<std::vector<char>>();
    const int64_t before = received(Traffic::reduce_scatter);
    done(comm_.reduce_scatter(items, {wire}, {"reduced", Traffic::reduce_scatter}, {}, present));
    expect_bytes("reduce_scatter", Traffic::reduce_scatter, before, bytes);
    for (size_t item = 0; item < items.size(); ++item) {
      const Cut& cut = items[item].cut;
      check((*present)[item] == (all_absent(item) ? 0 : 1), "present", item, "on rank", me_);
      const bool in_place = result_in_whole && first_dim(cut);
      expect("reduce_scatter", item, items[item].local, [&](int64_t i) {
        const int64_t at = in_whole(cut, me_, i);
        if (all_absent(item)) return in_place ? value(me_, item, at) : 77.0;
        return sum(item, at, wire);
      });
    }
  }

  void all_reduce(DType wire) {
    const DType dtype = wire == DType::f64 ? DType::f64 : DType::f32;
    std::vector<CutTensor> items;
    int64_t bytes = 0;
    for (Cut cut : cuts()) {
      cut.inner *= cut.outer;
      cut.outer = 1;
      const size_t item = items.size();
      items.push_back({{},
                       made(cut.numel(), dtype, [&](int64_t i) { return value(me_, item, i); }),
                       cut,
                       absent(me_, item)});
      bytes += summand_bytes(item, cut.numel(me_), wire);
      if (!all_absent(item))
        bytes += (cut.numel() - cut.numel(me_)) * static_cast<int64_t>(size_of(wire));
    }
    const auto present = std::make_shared<std::vector<char>>();
    const int64_t before = received(Traffic::all_reduce);
    done(comm_.all_reduce(items, {wire}, {"all reduced", Traffic::all_reduce}, {}, present));
    expect_bytes("all_reduce", Traffic::all_reduce, before, bytes);
    for (size_t item = 0; item < items.size(); ++item) {
      check((*present)[item] == (all_absent(item) ? 0 : 1), "present", item, "on rank", me_);
      if (!all_absent(item))
        expect("all_reduce", item, items[item].whole,
               [&](int64_t i) { return sum(item, i, wire); });
    }
  }

  void broadcast() {
    for (int root = 0; root < N_; ++root) {
      std::vector<Tensor> tensors;
      for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{1001}})
        tensors.push_back(made(n, DType::bf16, [&](int64_t i) { return value(me_, 0, i); }));
      const int64_t before = received(Traffic::control);
      done(comm_.broadcast(tensors, root, {"broadcast", Traffic::control}));
      expect_bytes("broadcast", Traffic::control, before, me_ == root ? 0 : 2004);
      for (const Tensor& t : tensors)
        expect("broadcast", 0, t,
               [&](int64_t i) { return rounded(value(root, 0, i), DType::bf16); });
    }
  }

  void all_to_all() {
    // Rank a sends a + 2 b elements to rank b.
    std::vector<Tensor> sent, received_tensors;
    for (int r = 0; r < N_; ++r) {
      sent.push_back(made(me_ + 2 * r, DType::f32,
                          [&](int64_t i) { return value(me_, static_cast<size_t>(r), i); }));
      received_tensors.push_back(empty(r + 2 * me_, DType::f32));
    }
    done(comm_.all_to_all(sent, received_tensors, {"all to all"}));
    for (int r = 0; r < N_; ++r)
      expect("all_to_all", static_cast<size_t>(r), received_tensors[static_cast<size_t>(r)],
             [&](int64_t i) { return value(r, static_cast<size_t>(me_), i); });
  }

  void words() {
    std::vector<int64_t> total = {me_ + 1, int64_t{1} << 40, -me_};
    sum_words(comm_, total, {"words"});
    check(total[0] == N_ * (N_ + 1) / 2 && total[1] == N_ * (int64_t{1} << 40) &&
              total[2] == -(N_ - 1) * N_ / 2,
          "sum_words gave", total[0], total[1], total[2]);
    std::vector<int64_t> most = {me_, -me_};
    max_words(comm_, most, {"words"});
    check(most[0] == N_ - 1 && most[1] == 0, "max_words gave", most[0], most[1]);
  }

  Communicator& comm_;
  const RuntimePtr runtime_;
  const int me_, N_;
};

inline void check_collectives(Communicator& comm, const RuntimePtr& runtime) {
  CollectiveChecks(comm, runtime).all();
}

/// The ranks as a mesh with `columns`: the groups of a row and of a column at once.
inline void check_subgroups(Communicator& comm, const RuntimePtr& runtime, int columns) {
  std::vector<int> row, column;
  for (int r = 0; r < comm.size(); ++r) {
    if (r / columns == comm.rank() / columns) row.push_back(r);
    if (r % columns == comm.rank() % columns) column.push_back(r);
  }
  const auto across = comm.subgroup(row);
  const auto down = comm.subgroup(column);
  check(across->size() == columns && across->rank() == comm.rank() % columns, "the row is wrong");
  check_collectives(*across, runtime);
  check_collectives(*down, runtime);
  check_collectives(comm, runtime);
}

/// The sums over ranks of what all of them receive: a whole (N - 1) times, or twice that.
inline void check_total_bytes(Communicator& comm, const RuntimePtr& runtime) {
  const int N = comm.size();
  const Cut cut = even_cut(1, 37, 3, N);
  const auto total_of = [&](Traffic traffic) {
    int64_t bytes = comm.received()[static_cast<size_t>(traffic)];
    sum_words(comm, {&bytes, 1}, {"bytes"});
    return bytes;
  };
  const Tensor whole = Tensor::full(runtime, {37, 3}, 1);
  const Tensor local = Tensor::full(runtime, {cut.size(comm.rank()), 3}, 1);
  const auto bytes_of = [&](Traffic traffic, const auto& call) {
    const int64_t before = total_of(traffic);
    const Work work = call(CallTag{"counted", traffic});
    work.event().wait();
    return total_of(traffic) - before;
  };
  const auto gather = [&](const CallTag& tag) {
    return comm.all_gather({{local, whole, cut}}, tag);
  };
  const auto scatter = [&](const CallTag& tag) {
    return comm.reduce_scatter({{local, whole, cut}}, {}, tag);
  };
  const auto reduce = [&](const CallTag& tag) {
    return comm.all_reduce({{{}, whole, cut}}, {}, tag);
  };
  const int64_t want = (N - 1) * 37 * 3 * 4;
  check(bytes_of(Traffic::all_gather, gather) == want, "all_gather's bytes");
  check(bytes_of(Traffic::reduce_scatter, scatter) == want, "reduce_scatter's bytes");
  check(bytes_of(Traffic::all_reduce, reduce) == 2 * want, "all_reduce's bytes");
}

}  // namespace sherd::test
