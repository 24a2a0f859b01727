#include "nn/dropout.h"

#include "autograd/ops/dropout.h"

namespace sherd {

Dropout::Dropout(double probability) : p(probability) {
  check(p >= 0 && p < 1, "dropout wants a probability in [0, 1), not", p);
}

Variable Dropout::forward(const Variable& x, const ForwardOptions& options) const {
  if (!options.training || p == 0) return x;
  return dropout(x, p, options.key);
}

}  // namespace sherd
