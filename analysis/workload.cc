#include "analysis/workload.h"

namespace sherd {

Workload workload(std::string_view name) {
  if (name == "W1")
    return {"W1", {.layers = 6, .heads = 6, .channels = 384, .vocab = 8192, .context = 256}, 8};
  if (name == "W2")
    return {"W2", {.layers = 6, .heads = 6, .channels = 384, .vocab = 50304, .context = 256}, 8};
  if (name == "W3")
    return {"W3", {.layers = 12, .heads = 12, .channels = 768, .vocab = 50304, .context = 64}, 4};
  fail("unknown workload", name, "; the workloads are W1, W2, W3");
}

std::vector<int32_t> workload_tokens(const Workload& w, uint64_t step) {
  std::vector<int32_t> tokens(static_cast<size_t>(w.batch * (w.model.context + 1)));
  uint64_t x = step + 1;
  for (auto& token : tokens) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    token = static_cast<int32_t>((x >> 33) % static_cast<uint64_t>(w.model.vocab));
  }
  return tokens;
}

}  // namespace sherd
