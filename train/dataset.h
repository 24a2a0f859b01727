// What [data] of a configuration names, opened: tokens to train on, tokens to validate with, and
// their tokenizer.
// Invariant: train has enough tokens for a sample, and so has validation unless it is empty.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "train/config/data.h"
#include "train/token_source.h"
#include "train/tokenizer.h"

namespace sherd {

struct Dataset {
  TokenSource train;
  TokenSource validation;                      // empty if nothing is held out
  std::shared_ptr<const Tokenizer> tokenizer;  // none for token files without data.tokenizer
  std::int64_t vocab = 0;                      // rows of the model's embedding
};

struct DatasetOptions {
  std::int64_t context = 0;           // model.context
  std::optional<std::int64_t> vocab;  // model.vocab
  std::string cache;                  // where prepared files go, such as default_cache_folder()
  /// The tokenizer of the run that is resumed: texts are read with it instead of with one of their
  /// own.
  std::shared_ptr<const Tokenizer> saved;
};

/// throws usage on a pattern without files, too few tokens, a vocabulary that does not fit, an
/// unknown character; io on a file that cannot be read or is no token file; each names key or path
Dataset open_dataset(const DataSection& data, const DatasetOptions& options);

}  // namespace sherd
