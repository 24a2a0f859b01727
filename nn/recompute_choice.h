// Recompute: what backward makes again instead of having it kept.
#pragma once

namespace sherd {

/// Of a transformer block: all of it but its input (`block`, which stands alone), or one value and
/// another. What each frees is in docs/autograd.md.
struct Recompute {
  bool block = false;
  bool activation = false;  ///< the activation's output, where it is kept
  bool norm = false;        ///< both norms' outputs
  bool mlp = false;         ///< the first projection's output of the feed-forward part
  bool qkv = false;         ///< queries, keys and values
  bool attention = false;   ///< attention's output

  bool operator==(const Recompute&) const = default;
};

inline constexpr Recompute kRecomputeNone{};
inline constexpr Recompute kRecomputeBlock{.block = true};

}  // namespace sherd
