// Instruction set levels. A kernel's one source is compiled once per level (build_defs/isa.bzl,
// which defines SHERD_ISA) and the level is chosen at run time, so a build never depends on the
// build machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace sherd {

/// x86-64-v2; -v3; -v4; -v4 with AVX512_BF16. Each includes the ones before it.
enum class Isa : uint8_t { base, avx2, avx512, avx512bf16 };

/// How many levels this build has, from `base` up; sanitizer builds have fewer, to build faster.
#ifdef SHERD_ISA_LEVELS
inline constexpr int kIsaLevels = SHERD_ISA_LEVELS;
#else
inline constexpr int kIsaLevels = 4;
#endif

#ifdef SHERD_ISA
/// The level a kernel source is being compiled for.
inline constexpr Isa kIsa = Isa::SHERD_ISA;
#endif

/// The best level that both this CPU and this build have.
Isa best_isa();
/// What a runtime runs at unless told otherwise: best_isa(); `base` in builds that have few levels,
/// so that the tests run at two.
Isa default_isa();

std::string_view name_of(Isa isa);

/// Throws usage, with the levels this machine has, for a name it does not know or cannot run.
Isa parse_isa(std::string_view name);

/// kernel.run<level>(begin, end) at the given level.
template <class Kernel>
void run_at(Isa isa, const Kernel& kernel, int64_t begin, int64_t end) {
  switch (isa) {
    case Isa::avx512bf16:
      if constexpr (kIsaLevels > 3) return kernel.template run<Isa::avx512bf16>(begin, end);
      [[fallthrough]];
    case Isa::avx512:
      if constexpr (kIsaLevels > 2) return kernel.template run<Isa::avx512>(begin, end);
      [[fallthrough]];
    case Isa::avx2:
      if constexpr (kIsaLevels > 1) return kernel.template run<Isa::avx2>(begin, end);
      [[fallthrough]];
    case Isa::base:
      return kernel.template run<Isa::base>(begin, end);
  }
}

}  // namespace sherd
