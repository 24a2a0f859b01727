// The model that [model] describes.
#pragma once

#include <memory>

#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "train/config.h"

namespace sherd {

/// `vocab` are the rows of the token table; values in [precision]'s compute dtype.
std::unique_ptr<LanguageModel> make_model(Tape& tape, const RunConfig& config, std::int64_t vocab);

/// The sizes of each architecture's model.
Gpt2Config gpt2_config(const RunConfig& config, std::int64_t vocab);
LlamaConfig llama_config(const RunConfig& config, std::int64_t vocab);  ///< of encoder, too

}  // namespace sherd
