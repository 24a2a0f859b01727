// Communicator: a group of ranks and its collectives. Asynchronous: a call returns the Work that
// consumers wait for, and a list of tensors is one call. Own transports implement this class.
// Invariants: all ranks of a group make the same calls in the same order, or every one of them gets
// an error that names the first difference; payload is counted where it is copied or sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "dist/comm/cut.h"
#include "tensor/stream.h"
#include "tensor/tensor.h"

namespace sherd {

/// What bytes are counted as.
enum class Traffic { all_gather, reduce_scatter, all_reduce, control, eval, checkpoint, padding };
inline constexpr int kTraffics = 7;
const char* name_of(Traffic traffic);

/// Payload that this rank received from others, in bytes.
using TrafficBytes = std::array<int64_t, kTraffics>;

/// Who calls, for errors, traces and counters.
struct CallTag {
  std::string unit;  ///< "blocks.3"
  Traffic traffic = Traffic::control;
  /// RunOn::caller: this thread waits at once, and runs the call itself if nothing is in flight.
  RunOn where = RunOn::worker;
};

/// One tensor of a collective: the whole, and this rank's part of it as `cut` says.
/// Both are contiguous and of one dtype; `local` may be a view of its place in `whole`.
struct CutTensor {
  Tensor local;
  Tensor whole;
  Cut cut;
  /// In a reduction: this rank adds nothing, whatever `whole` holds.
  bool absent = false;
};

/// How summands travel and where the sums go.
struct Reduction {
  /// Values are rounded to it, summed in f32 in a fixed tree over the ranks, and the sum is rounded
  /// to it once. f64 tensors travel as f64.
  DType wire = DType::f32;
  /// With a half as the wire: values are divided by 2^shift before they are rounded, and the sum is
  /// multiplied by it after, so that f16 holds sums of many ranks.
  int shift = 0;
};

/// A collective that ran: for traces and for measuring overlap.
struct CommSpan {
  const char* op = "";
  std::string unit;
  int64_t bytes = 0;
  double begin_s = 0;  ///< of steady_seconds()
  double end_s = 0;
};

/// Parts of this rank that the others may read at any time until the next barrier but one; see
/// Communicator::rest.
struct Resting {
  int64_t id = -1;
};

/// Used by its rank's thread. Every call but those named synchronous returns at once. `after`: the
/// collective begins when it is done. Tensors are kept alive by the Work; they are not written or
/// released by others before it is waited for.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// whole = the ranks' locals, each in its range. Every rank receives (size-1)/size of the whole.
  /// With `resting`, whose tensors the locals are, nobody waits for anybody where memory can be
  /// read from outside.
  virtual Work all_gather(std::vector<CutTensor> items, const CallTag& tag, Event after = {},
                          Resting resting = {}) = 0;
  /// local = the sum over ranks of their wholes' range. An absent `whole` counts as zeros and may
  /// be empty; where all are absent, local is left as it is and, if `present` is given,
  /// (*present)[i] = 0. `present` is filled when the Work is done. What `whole` holds is used up.
  virtual Work reduce_scatter(std::vector<CutTensor> items, const Reduction& how,
                              const CallTag& tag, Event after = {},
                              std::shared_ptr<std::vector<char>> present = {}) = 0;
  /// whole = the sum over ranks of their wholes: a reduce-scatter and an all-gather of the results.
  /// `local` is not used; `cut`, of the first dim, says who sums what. Every `whole` has bytes.
  virtual Work all_reduce(std::vector<CutTensor> items, const Reduction& how, const CallTag& tag,
                          Event after = {}, std::shared_ptr<std::vector<char>> present = {}) = 0;
  /// tensors = those of `root`.
  virtual Work broadcast(std::vector<Tensor> tensors, int root, const CallTag& tag,
                         Event after = {}) = 0;
  /// received[r] = what rank r sends to this one; equal sizes on both sides.
  virtual Work all_to_all(std::vector<Tensor> sent, std::vector<Tensor> received,
                          const CallTag& tag, Event after = {}) = 0;

  /// Synchronous: `all` = the ranks' `mine`, in order; of one size on every rank.
  virtual void exchange(std::span<const std::byte> mine, std::span<std::byte> all,
                        const CallTag& tag) = 0;
  /// Synchronous: what the others wrote into their resting tensors before is seen after.
  void barrier(const CallTag& tag) { exchange({}, {}, tag); }

  /// Synchronous: lets the others read `locals` (contiguous) in all_gather without a rendezvous.
  /// They are written only between two barriers. They are kept until forget() or the end of all
  /// ranks: after an error on one rank others may still read them.
  virtual Resting rest(const std::vector<Tensor>& locals) = 0;
  /// Nobody reads these any more: all ranks have said so at a barrier.
  virtual void forget(Resting /*resting*/) {}
  /// Synchronous: the group of the ranks in `members` (of this group, rising), made by all ranks of
  /// this group at once, each naming the group that it is in. Its calls run on this one's stream.
  virtual std::unique_ptr<Communicator> subgroup(const std::vector<int>& members) = 0;

  /// What was received since the start.
  virtual TrafficBytes received() const = 0;
  /// `observe` is called on the thread of each collective after it; empty: nobody.
  virtual void set_observer(std::function<void(const CommSpan&)> observe) = 0;

  /// Ends the group: whoever waits or calls gets an Error(comm) with `cause`. The first cause wins.
  virtual void abort(const std::string& cause) = 0;
};

/// Synchronous: the ranks' `mine` (plain data), one rank after the other; as many on every rank.
template <class T>
std::vector<T> exchange_all(Communicator& comm, std::span<const T> mine, const CallTag& tag) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(mine.size() * static_cast<size_t>(comm.size()));
  comm.exchange(std::as_bytes(mine), std::as_writable_bytes(std::span(all)), tag);
  return all;
}
/// The same of one each.
template <class T>
std::vector<T> exchange_one(Communicator& comm, const T& mine, const CallTag& tag) {
  return exchange_all(comm, std::span<const T>(&mine, 1), tag);
}

/// Sum and maximum of words over the ranks, in place.
void sum_words(Communicator& comm, std::span<int64_t> words, const CallTag& tag);
void max_words(Communicator& comm, std::span<int64_t> words, const CallTag& tag);

}  // namespace sherd
