// Embedding: a table of which forward picks rows.
#pragma once

#include "nn/module.h"

namespace sherd {

struct EmbeddingConfig {
  int64_t rows = 0;
  int64_t channels = 0;
  DType dtype = DType::f32;
  Init init = Init::normal(0.02);
};

struct Embedding : Module {
  Parameter weight;  ///< [rows, channels]

  Embedding(Tape& tape, const EmbeddingConfig& config);
  void fields(ModuleVisitor& visit) override;
  /// indices [...] i32|i64 → [..., channels]
  Variable forward(const Tensor& indices) const;
};

}  // namespace sherd
