// Dropout: the layer around the op of that name. Nothing to learn; off outside training.
#pragma once

#include "nn/forward_options.h"
#include "nn/module.h"

namespace sherd {

struct Dropout : Module {
  double p = 0;

  /// Throws usage unless 0 ≤ p < 1.
  explicit Dropout(double probability);
  void fields(ModuleVisitor&) override {}
  /// Each element is 0 with probability p, else x / (1 − p): a function of the key and the
  /// element's index alone. Returns x itself outside training or when p is 0.
  Variable forward(const Variable& x, const ForwardOptions& options) const;
};

}  // namespace sherd
