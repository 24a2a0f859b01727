// A transport of one's own: another one's collectives, each of which begins later, and a count of
// them. A transport implements Communicator (dist/comm/communicator.h); nothing registers it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dist/comm/communicator.h"

/// Used by its rank's thread. `inner` outlives it.
class LateComm final : public sherd::Communicator {
 public:
  using Counts = std::map<std::string, int>;  ///< by op and unit
  LateComm(sherd::Communicator& inner, double delay_s)
      : LateComm(inner, delay_s, std::make_shared<Counts>()) {}

  const Counts& counts() const { return *counts_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  sherd::Work all_gather(std::vector<sherd::CutTensor> items, const sherd::CallTag& tag,
                         sherd::Event after, sherd::Resting resting) override {
    return inner_.all_gather(std::move(items), tag, late("all_gather", tag, std::move(after)),
                             resting);
  }
  sherd::Work reduce_scatter(std::vector<sherd::CutTensor> items, const sherd::Reduction& how,
                             const sherd::CallTag& tag, sherd::Event after,
                             std::shared_ptr<std::vector<char>> present) override {
    return inner_.reduce_scatter(std::move(items), how, tag,
                                 late("reduce_scatter", tag, std::move(after)), std::move(present));
  }
  sherd::Work all_reduce(std::vector<sherd::CutTensor> items, const sherd::Reduction& how,
                         const sherd::CallTag& tag, sherd::Event after,
                         std::shared_ptr<std::vector<char>> present) override {
    return inner_.all_reduce(std::move(items), how, tag, late("all_reduce", tag, std::move(after)),
                             std::move(present));
  }
  sherd::Work broadcast(std::vector<sherd::Tensor> tensors, int root, const sherd::CallTag& tag,
                        sherd::Event after) override {
    return inner_.broadcast(std::move(tensors), root, tag,
                            late("broadcast", tag, std::move(after)));
  }
  sherd::Work all_to_all(std::vector<sherd::Tensor> sent, std::vector<sherd::Tensor> received,
                         const sherd::CallTag& tag, sherd::Event after) override {
    return inner_.all_to_all(std::move(sent), std::move(received), tag,
                             late("all_to_all", tag, std::move(after)));
  }
  void exchange(std::span<const std::byte> mine, std::span<std::byte> all,
                const sherd::CallTag& tag) override {
    inner_.exchange(mine, all, tag);
  }
  sherd::Resting rest(const std::vector<sherd::Tensor>& locals) override {
    return inner_.rest(locals);
  }
  void forget(sherd::Resting resting) override { inner_.forget(resting); }
  /// Groups of it are late, too.
  std::unique_ptr<sherd::Communicator> subgroup(const std::vector<int>& members) override;
  sherd::TrafficBytes received() const override { return inner_.received(); }
  void set_observer(std::function<void(const sherd::CommSpan&)> observe) override {
    inner_.set_observer(std::move(observe));
  }
  void abort(const std::string& cause) override { inner_.abort(cause); }

 private:
  LateComm(sherd::Communicator& inner, double delay_s, std::shared_ptr<Counts> counts)
      : inner_(inner), delay_s_(delay_s), counts_(std::move(counts)) {}

  /// What the inner collective follows: a wait, which follows `after`. The caller goes on at once.
  sherd::Event late(const char* op, const sherd::CallTag& tag, sherd::Event after);

  std::unique_ptr<sherd::Communicator> owned_;  // a subgroup's inner
  sherd::Communicator& inner_;
  const double delay_s_;
  const std::shared_ptr<Counts> counts_;
  sherd::Stream waits_{sherd::StreamKind::worker, "delay"};
};
