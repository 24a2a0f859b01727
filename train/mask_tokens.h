// The task of a masked language model: to say which tokens are hidden.
// Devlin et al. 2019, "BERT", section 3.1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/random.h"

namespace sherd {

struct MaskedTokens {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;  ///< the token at what is to be predicted, else -1
};

/// Of the tokens 15 % are to be predicted; of these the model sees `mask` at 80 %, any token below
/// `vocab` at 10 %, and the token itself at 10 %. Token i's fate depends on (key, i) alone.
MaskedTokens mask_tokens(std::span<const std::int32_t> tokens, std::int32_t vocab,
                         std::int32_t mask, RandomKey key);

}  // namespace sherd
