// Parameter: a Variable that a module owns, with how it starts. A member of the module, listed in
// its fields(); the dotted name that it gets there is its name everywhere else.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "autograd/tape.h"
#include "autograd/variable.h"

namespace sherd {

/// How a parameter starts: N(0, scale²), U(-scale, scale), or scale everywhere.
struct Init {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  double scale = 0;

  static Init zeros() { return {Kind::constant, 0}; }
  static Init ones() { return {Kind::constant, 1}; }
  static Init normal(double stddev) { return {Kind::normal, stddev}; }
  static Init uniform(double bound) { return {Kind::uniform, bound}; }
  /// U(-√(6/fan_in), √(6/fan_in)): keeps the variance through a layer followed by ReLU.
  /// He et al. 2015, "Delving Deep into Rectifiers", eq. 10
  static Init kaiming_uniform(int64_t fan_in) {
    return uniform(std::sqrt(6.0 / static_cast<double>(fan_in)));
  }
};

/// Copies are the same parameter: that is how one is shared (tied).
class Parameter : public Variable {
 public:
  /// None: a layer without a bias has this as its bias.
  Parameter() = default;
  /// Uninitialised bytes in category `params`, none yet under DeferParameters. A plain `tape` leaf
  /// until a module names it.
  Parameter(Tape& tape, const Shape& shape, DType dtype, Init init) : init_(init) {
    const CategoryScope scope(*tape.runtime(), Category::params);
    static_cast<Variable&>(*this) = tape.leaf(
        Tensor::empty(tape.runtime(), shape, dtype, {},
                      tape.runtime()->defers_parameters() ? Allocation::later : Allocation::now),
        "parameter");
  }

  const Init& init() const { return init_; }
  bool frozen() const { return !requires_grad(); }
  /// A frozen parameter gets no gradient; the one that it has goes.
  void set_frozen(bool frozen) const {
    state().requires_grad = !frozen;
    if (frozen) set_grad({});
  }
  /// The dotted name, also that of its bytes.
  void set_name(std::string name) const {
    value().storage()->set_owner(name);
    state().name = std::move(name);
  }

 private:
  Init init_;
};

}  // namespace sherd
