// Text from a trained model, token by token.
// Invariant: the tokens are a function of model, prompt, options and seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "nn/models/language_model.h"
#include "train/sampling.h"
#include "train/tokenizer.h"

namespace sherd {

struct GenerateOptions {
  std::int64_t tokens = 200;
  std::uint64_t seed = 1;
  SamplingOptions sampling;
};

/// Calls `emit` with the text of each new token that follows `prompt` (pieces of a character, with
/// a tokenizer of bytes). A token costs one token's work, thanks to a cache of keys and values;
/// when that is full, the last half of the context is read anew, and what was before it is
/// forgotten. throws usage if the prompt is empty, longer than the model's context, or not in the
/// vocabulary
void generate(const LanguageModel& model, const Tokenizer& tokenizer, std::string_view prompt,
              const GenerateOptions& options, const std::function<void(const std::string&)>& emit);

}  // namespace sherd
