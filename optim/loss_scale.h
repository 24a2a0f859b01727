// LossScale: what a loss is multiplied by before backward, so that gradients in f16 neither vanish
// nor overflow. Fixed, or dynamic: it backs off when gradients overflow, and grows after a while
// without.
// Micikevicius et al. 2018, "Mixed Precision Training", section 3.2.
#pragma once

#include <cstdint>

namespace sherd {

struct LossScaleOptions {
  double start = 1;  ///< a power of two
  bool dynamic = false;
  int64_t window = 2000;  ///< steps in a row without overflow after which it doubles, >= 1
  double floor = 1;       ///< where backing off ends
};

/// Not thread-safe; ranks that make the same calls have the same scale.
class LossScale {
 public:
  /// Where it stands, for a checkpoint.
  struct State {
    double value = 1;
    int64_t clean_steps = 0;  ///< in a row, since it last changed
    bool operator==(const State&) const = default;
  };

  /// throws usage unless start and floor are powers of two, floor <= start, and window >= 1
  explicit LossScale(const LossScaleOptions& options = {});

  double value() const { return state_.value; }
  bool dynamic() const { return options_.dynamic; }
  /// Whether a step that overflowed is to be skipped: else there is nothing smaller to try.
  bool can_back_off() const { return options_.dynamic && state_.value > options_.floor; }

  /// After a step that was taken: the scale doubles at the end of a window, up to 2^32.
  void step_taken();
  /// After a step that was skipped: the scale is halved, not below the floor.
  void step_skipped();

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  LossScaleOptions options_;
  State state_;
};

}  // namespace sherd
