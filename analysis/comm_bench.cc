#include "analysis/comm_bench.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/progress.h"

namespace sherd {

namespace {

constexpr int kWarmUp = 3;
// From when the last rank is there until all start: what it takes to leave an exchange.
constexpr double kHeadStart_s = 200e-6;

/// Calls that are waited for at once run on their rank's thread.
CallTag here(const char* unit) { return {.unit = unit, .where = RunOn::caller}; }

void wait(Work work) { work.event().wait(); }

/// Returns on all ranks at the same instant, which it returns; ranks of one host share the clock.
double start_together(Communicator& comm) {
  const auto all = exchange_one(comm, steady_seconds(), {"start"});
  const double start_s = *std::max_element(all.begin(), all.end()) + kHeadStart_s;
  while (steady_seconds() < start_s) _mm_pause();
  return start_s;
}

}  // namespace

std::vector<CommTime> time_in_turns(Rank& rank, const std::vector<CommOp>& ops, int rounds) {
  std::vector<std::vector<double>> seconds(ops.size());
  for (int round = 0; round < kWarmUp + rounds; ++round)
    for (size_t i = 0; i < ops.size(); ++i) {
      ops[i].run();  // what the one before it left in caches does not count
      const double start_s = start_together(rank.comm);
      ops[i].run();
      const double mine_s = steady_seconds() - start_s;
      if (round >= kWarmUp) seconds[i].push_back(mine_s);
    }
  std::vector<CommTime> times;
  for (size_t i = 0; i < ops.size(); ++i) {
    std::vector<double> slowest = seconds[i];
    const auto all = exchange_all<double>(rank.comm, slowest, {"times"});
    for (size_t k = 0; k < all.size(); ++k)
      slowest[k % slowest.size()] = std::max(slowest[k % slowest.size()], all[k]);
    std::sort(slowest.begin(), slowest.end());
    times.push_back({ops[i].name, slowest[slowest.size() / 2] * 1e6, slowest.front() * 1e6,
                     ops[i].received_bytes});
  }
  return times;
}

CommBuffers::CommBuffers(Rank& rank, int64_t bytes)
    : rank_(rank),
      bytes_(bytes),
      whole_(Tensor::full(rank.runtime, {bytes / 4}, 0)),
      other_(Tensor::full(rank.runtime, {bytes / 4}, 0)),
      part_(Tensor::full(rank.runtime, {bytes / 4 / rank.size}, 0)),
      cut_(even_cut(1, bytes / 4, 1, rank.size)),
      resting_(rank.comm.rest({part_})) {
  check(bytes > 0 && bytes % (4 * rank.size) == 0, "expected a multiple of 4 bytes a rank, got",
        bytes, "on", rank.size, "ranks");
}

std::vector<CommOp> CommBuffers::ops() const {
  Communicator& comm = rank_.comm;
  const auto b = static_cast<double>(bytes_);
  const double f = b * (rank_.size - 1) / rank_.size;
  std::vector<Tensor> sent, received;
  const int64_t each = part_.numel();
  for (int r = 0; r < rank_.size; ++r) {
    sent.push_back(whole_.slice(0, r * each, (r + 1) * each));
    received.push_back(other_.slice(0, r * each, (r + 1) * each));
  }
  return {
      {"memcpy", b,
       [this] { std::memcpy(other_.raw(), whole_.raw(), static_cast<size_t>(bytes_)); }},
      {"all_gather", f,
       [this, &comm] {
         wait(comm.all_gather({{part_, other_, cut_}}, here("all_gather")));
       }},
      {"all_gather, resting", f,
       [this, &comm] {
         wait(comm.all_gather({{part_, other_, cut_}}, here("all_gather"), {}, resting_));
       }},
      {"all_gather, beside", f,
       [this, &comm] {
         wait(comm.all_gather({{part_, other_, cut_}}, {"all_gather"}, {}, resting_));
       }},
      {"reduce_scatter", f,
       [this, &comm] {
         wait(comm.reduce_scatter({{part_, whole_, cut_}}, {}, here("reduce_scatter")));
       }},
      {"all_reduce", 2 * f,
       [this, &comm] {
         wait(comm.all_reduce({{{}, other_, cut_}}, {}, here("all_reduce")));
       }},
      {"broadcast", b, [this, &comm] { wait(comm.broadcast({other_}, 0, here("broadcast"))); }},
      {"all_to_all", f,
       [&comm, sent = std::move(sent), received = std::move(received)] {
         wait(comm.all_to_all(sent, received, here("all_to_all")));
       }},
  };
}

int comm_rounds(int64_t bytes) {
  return static_cast<int>(std::clamp<int64_t>((int64_t{512} << 20) / bytes, 9, 300));
}

std::vector<CommOp> tiny_ops(Rank& rank, int count, int64_t elements) {
  const auto items = std::make_shared<std::vector<CutTensor>>();
  const Cut cut = even_cut(1, elements, 1, rank.size);
  for (int i = 0; i < count; ++i)
    items->push_back({Tensor::full(rank.runtime, {cut.size(rank.rank)}, 0),
                      Tensor::full(rank.runtime, {elements}, 0), cut});
  Communicator& comm = rank.comm;
  const double f = 4.0 * static_cast<double>(elements) * count * (rank.size - 1) / rank.size;
  const auto each = [items](const auto& call) {
    return [items, call] {
      Work last;
      for (const auto& item : *items) last = call({item});
      wait(std::move(last));
    };
  };
  const auto gather = [&comm](std::vector<CutTensor> list) {
    return comm.all_gather(std::move(list), here("tiny"));
  };
  const auto reduce = [&comm](std::vector<CutTensor> list) {
    return comm.reduce_scatter(std::move(list), {}, here("tiny"));
  };
  return {{"all_gather, one call", f, [items, gather] { wait(gather(*items)); }},
          {"all_gather, a call each", f, each(gather)},
          {"reduce_scatter, one call", f, [items, reduce] { wait(reduce(*items)); }},
          {"reduce_scatter, a call each", f, each(reduce)}};
}

}  // namespace sherd
