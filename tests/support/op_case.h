// One case of an op: shapes, dtypes and tolerance are named once, and every check derives from
// them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "autograd/tape.h"
#include "tests/support/near.h"

namespace sherd::test {

/// How an input is made. Values depend on (input's position, index) alone.
struct CaseInput {
  Shape shape;
  /// Floating inputs: uniform in [low, high), rounded to the case's dtype.
  double low = -2;
  double high = 2;
  /// false: a constant.
  bool gradient = true;
  /// Set, with values, for inputs that are not floating (indices, masks): they are constants.
  DType dtype = DType::f32;
  std::vector<int64_t> values = {};
};

/// Values of the inputs, row-major, as numbers.
using CaseValues = std::vector<std::vector<double>>;

struct OpCase {
  const char* name;
  std::vector<CaseInput> inputs;
  std::function<Variable(const std::vector<Variable>&)> op;
  /// The plain loop in f64: values of the inputs to values of the output. Empty: none.
  std::function<std::vector<double>(const CaseValues&)> oracle = {};
  /// Besides f64, which is always run.
  std::vector<DType> dtypes = {DType::f32, DType::bf16};
  /// f64 against the oracle; f32, and bf16 or f16, against f64 run on the same rounded inputs.
  Tolerance f64 = {1e-12, 1e-13};
  Tolerance f32 = {1e-5, 2e-6};
  Tolerance half = {2e-2, 2e-2};
  GradcheckOptions gradcheck = {};
  /// false: the function has a kink that finite differences may meet.
  bool differentiable = true;
};

/// Catch2 checks, each under a section of its name:
/// - f64 agrees with the oracle, and backward with finite differences;
/// - at every instruction set of this CPU, each dtype's output and gradients agree with f64's at
/// the
///   best one;
/// - there, two threads and inputs that are strided views give the bits of one thread;
/// - meta gives the same shapes and dtypes, and the same live and peak bytes.
void run(const OpCase& c);

/// The instruction sets that both this CPU and this build have.
std::vector<Isa> all_isas();

/// A contiguous tensor whose values are uniform in [low, high) and depend on (stream, index) alone.
Tensor uniform(const RuntimePtr& runtime, const Shape& shape, uint64_t stream, double low = -2,
               double high = 2, DType dtype = DType::f32);

/// Row-major values as a tensor of `dtype` (rounded to it).
Tensor tensor_of(const RuntimePtr& runtime, const Shape& shape, const std::vector<double>& values,
                 DType dtype);

}  // namespace sherd::test
