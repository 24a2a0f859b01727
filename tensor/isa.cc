#include "tensor/isa.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sherd {

namespace {

constexpr std::string_view kNames[] = {"base", "avx2", "avx512", "avx512bf16"};

Isa cpu_isa() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  if (v4 && __builtin_cpu_supports("avx512bf16")) return Isa::avx512bf16;
  if (v4) return Isa::avx512;
  return v3 ? Isa::avx2 : Isa::base;
}

}  // namespace

Isa best_isa() { return std::min(cpu_isa(), static_cast<Isa>(kIsaLevels - 1)); }

Isa default_isa() { return kIsaLevels < 4 ? Isa::base : best_isa(); }

std::string_view name_of(Isa isa) { return kNames[static_cast<int>(isa)]; }

Isa parse_isa(std::string_view name) {
  std::string available;
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) {
    if (name == kNames[i]) return static_cast<Isa>(i);
    available += (i ? ", " : "") + std::string(kNames[i]);
  }
  fail("instruction set is not available on this machine:", name, "; available:", available);
}

}  // namespace sherd
