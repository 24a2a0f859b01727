#include "nn/embedding.h"

#include "autograd/ops/embedding.h"

namespace sherd {

Embedding::Embedding(Tape& tape, const EmbeddingConfig& config)
    : weight(tape, {config.rows, config.channels}, config.dtype, config.init) {}

void Embedding::fields(ModuleVisitor& visit) { visit("weight", weight); }

Variable Embedding::forward(const Tensor& indices) const { return embedding(weight, indices); }

}  // namespace sherd
