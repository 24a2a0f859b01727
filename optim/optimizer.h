// What all optimizers share: the slots they update, and one step over all of them.
// Invariant: an optimizer sees local tensors only. An update is element by element, so any cut of a
// parameter into slots gives the same bits, and nothing here can tell how parameters are sharded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace sherd {

/// What an optimizer keeps for a slot: "m", "v", "momentum", "master".
struct SlotState {
  std::string name;
  Tensor tensor;
};

/// Where the elements of a rank's piece are in the whole parameter: element i is number
/// first + i / run · stride + i % run there.
struct GlobalPlace {
  int64_t first = 0;
  int64_t run = INT64_MAX;
  int64_t stride = 0;

  int64_t of(int64_t i) const { return first + i / run * stride + i % run; }
  bool operator==(const GlobalPlace&) const = default;
};

/// One parameter, or a rank's piece of it. All tensors are contiguous and of value's shape.
struct Slot {
  std::string name;
  Tensor value;      ///< f32, f64, bf16 or f16
  Tensor grad = {};  ///< f32 (f64 for f64); an empty handle: this slot stays as it is
  double weight_decay = 0;
  double lr_scale = 1;
  GlobalPlace place = {};  ///< for what is rounded at random, so that every cut rounds alike
  std::vector<SlotState> state = {};

  /// The state of that name; an empty handle if there is none.
  Tensor find_state(std::string_view state_name) const;
};

/// Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Makes the state that the slot lacks, in category `optimizer`: moments of zeros, and for bf16
  /// and f16 values `master`, an f32 copy of the value. What is there already (from a checkpoint)
  /// stays. step() does it for slots that come with a gradient.
  virtual void prepare(Slot& slot) const = 0;

  /// One update of every slot that has a gradient, from grad · grad_scale, at lr · lr_scale; in one
  /// pass over memory. Bumps the versions of what it writes; gradients are left as they are.
  /// throws numeric, naming the slot: before anything is written if lr or grad_scale is not finite;
  /// after the update if a gradient is not (ask grad_norm first to have nothing written)
  void step(std::span<Slot> slots, double lr, double grad_scale = 1);

  /// Updates made so far; a resumed run sets it.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

  struct StepInput {
    int64_t step = 1;  ///< this update's number, from 1
    double lr = 0;
    double grad_scale = 1;
  };
  /// Updates elements [begin, end) of a slot that is prepared and has a gradient; returns false if
  /// one of its gradients is not finite. Called by several threads, on different elements.
  virtual bool update(const Slot& slot, const StepInput& in, int64_t begin, int64_t end) const = 0;

 private:
  int64_t steps_ = 0;
};

/// prepare() for one tensor of zeros, f32 (f64 for f64) or bf16.
void add_zero_state(Slot& slot, std::string_view state_name, DType dtype);
inline void add_zero_state(Slot& slot, std::string_view state_name) {
  add_zero_state(slot, state_name, accumulate_dtype(slot.value.dtype()));
}
/// prepare() for the master of a bf16 or f16 value; nothing happens for other dtypes.
void add_master(Slot& slot);

}  // namespace sherd
