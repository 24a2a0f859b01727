// Goldens: what PyTorch computed, in tests/goldens/NAME.safetensors (made by tools/make_goldens).
// Names in a file: in.ARG inputs, out or out.NAME results, dout or dout.NAME the gradient from
// above, grad.ARG gradients. Inputs are f32, i32 or bool; expected values are f64.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "tests/support/near.h"

namespace sherd::test {

class Golden {
 public:
  /// Reads the file; the test's BUILD target depends on //tests/support:golden, which brings them.
  explicit Golden(const std::string& name);

  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  std::vector<std::string> names() const;
  /// The tensor as stored, or converted.
  Tensor tensor(const RuntimePtr& runtime, const std::string& name) const;
  Tensor tensor(const RuntimePtr& runtime, const std::string& name, DType dtype) const;
  std::vector<double> values(const std::string& name) const;

 private:
  struct Entry {
    DType dtype;
    Shape shape;
    size_t begin;
  };
  const Entry& entry(const std::string& name) const;

  std::string name_;
  std::map<std::string, Entry> entries_;
  std::vector<char> bytes_;
};

/// Runs `op` on in.ARG for each of `args`, in that order, with floating inputs in `dtype`, and
/// checks `out` and every grad.ARG that the file has; at every instruction set.
void check_golden(const std::string& name, const std::vector<std::string>& args,
                  const std::function<Variable(const std::vector<Variable>&)>& op,
                  Tolerance tolerance, DType dtype = DType::f32);

}  // namespace sherd::test
