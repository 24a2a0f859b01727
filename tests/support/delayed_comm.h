// A transport whose collectives come late: another one's, with random waits before and after each
// call, on the rank's thread and beside it. Ranks then meet in orders that no quiet machine shows.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "dist/comm/communicator.h"

namespace sherd::test {

/// Waits of one rank, a function of the seed: half of them none, three eighths a yield, the others
/// up to `most_us`, few of them long. Used by the rank's thread.
class Delays {
 public:
  Delays(uint64_t seed, int most_us) : random_(seed), most_us_(most_us) {}

  /// The next wait, to be called by whoever is to wait.
  std::function<void()> next() {
    const uint64_t kind = random_() % 8;
    const double share = static_cast<double>(random_() >> 11) * 0x1p-53;
    if (kind < 4) return [] {};
    if (kind < 7) return [] { std::this_thread::yield(); };
    ++slept_;
    const std::chrono::duration<double, std::micro> us(share * share * most_us_);
    return [us] { std::this_thread::sleep_for(us); };
  }
  void wait() { next()(); }
  uint64_t seed() { return random_(); }
  int64_t slept() const { return slept_; }

 private:
  std::mt19937_64 random_;
  const double most_us_;
  int64_t slept_ = 0;
};

/// Used by its rank's thread. `inner` outlives it.
class DelayedComm final : public Communicator {
 public:
  DelayedComm(Communicator& inner, uint64_t seed, int most_us)
      : inner_(inner), most_us_(most_us), delays_(seed, most_us) {}

  /// Waits that were a sleep, so far.
  int64_t slept() const { return delays_.slept(); }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Work all_gather(std::vector<CutTensor> items, const CallTag& tag, Event after,
                  Resting resting) override {
    return late(tensors_of(items), std::move(after), [&](Event begin) {
      return inner_.all_gather(items, tag, std::move(begin), resting);
    });
  }
  Work reduce_scatter(std::vector<CutTensor> items, const Reduction& how, const CallTag& tag,
                      Event after, std::shared_ptr<std::vector<char>> present) override {
    return late(tensors_of(items), std::move(after), [&](Event begin) {
      return inner_.reduce_scatter(items, how, tag, std::move(begin), present);
    });
  }
  Work all_reduce(std::vector<CutTensor> items, const Reduction& how, const CallTag& tag,
                  Event after, std::shared_ptr<std::vector<char>> present) override {
    return late(tensors_of(items), std::move(after), [&](Event begin) {
      return inner_.all_reduce(items, how, tag, std::move(begin), present);
    });
  }
  Work broadcast(std::vector<Tensor> tensors, int root, const CallTag& tag, Event after) override {
    return late(tensors, std::move(after), [&](Event begin) {
      return inner_.broadcast(tensors, root, tag, std::move(begin));
    });
  }
  Work all_to_all(std::vector<Tensor> sent, std::vector<Tensor> received, const CallTag& tag,
                  Event after) override {
    std::vector<Tensor> all = sent;
    all.insert(all.end(), received.begin(), received.end());
    return late(std::move(all), std::move(after), [&](Event begin) {
      return inner_.all_to_all(sent, received, tag, std::move(begin));
    });
  }
  void exchange(std::span<const std::byte> mine, std::span<std::byte> all,
                const CallTag& tag) override {
    delays_.wait();
    inner_.exchange(mine, all, tag);
    delays_.wait();
  }
  Resting rest(const std::vector<Tensor>& locals) override {
    delays_.wait();
    return inner_.rest(locals);
  }
  void forget(Resting resting) override { inner_.forget(resting); }
  /// Groups of it are late, too.
  std::unique_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    delays_.wait();
    auto inner = inner_.subgroup(members);
    auto group = std::make_unique<DelayedComm>(*inner, delays_.seed(), most_us_);
    group->owned_ = std::move(inner);
    return group;
  }
  TrafficBytes received() const override { return inner_.received(); }
  void set_observer(std::function<void(const CommSpan&)> observe) override {
    inner_.set_observer(std::move(observe));
  }
  void abort(const std::string& cause) override { inner_.abort(cause); }

 private:
  static std::vector<Tensor> tensors_of(const std::vector<CutTensor>& items) {
    std::vector<Tensor> all;
    for (const auto& item : items)
      for (const Tensor& t : {item.local, item.whole})
        if (t) all.push_back(t);
    return all;
  }

  /// call(begin) is the inner call, which begins late and is known late to have ended.
  template <class Call>
  Work late(std::vector<Tensor> buffers, Event after, const Call& call) {
    delays_.wait();
    const Work inner = call(befores_.submit(delays_.next(), {std::move(after)}));
    Event done = afters_.submit(delays_.next(), {inner.event()});
    delays_.wait();
    return {std::move(done), std::move(buffers)};
  }

  std::unique_ptr<Communicator> owned_;  // a subgroup's inner
  Communicator& inner_;
  const int most_us_;
  Delays delays_;
  // Two, so that the next call runs while the end of one is not known yet.
  Stream befores_{StreamKind::worker, "delay before"};
  Stream afters_{StreamKind::worker, "delay after"};
};

}  // namespace sherd::test
