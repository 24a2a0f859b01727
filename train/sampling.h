// Choosing the next token from logits.
// Invariant: the choice is a function of the logits, the options and one uniform number.
#pragma once

#include <cstdint>
#include <span>

namespace sherd {

struct SamplingOptions {
  double temperature = 0.8;  ///< 0: always the most likely token
  std::int64_t top_k = 0;    ///< only the k most likely; 0: all
  double top_p = 1;          ///< only the fewest that together have this probability

  /// throws usage, naming the option
  void validate() const;
};

/// A token drawn with probability softmax(logits / temperature) among those that top_k, then top_p
/// leave; of equal logits the lower id comes first. `u` in [0, 1).
/// throws numeric if a logit is NaN
/// Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration" (top_p)
std::int32_t choose_token(std::span<const float> logits, const SamplingOptions& options, double u);

}  // namespace sherd
