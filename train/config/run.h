// [run]: what is run, where and on what.
#pragma once

#include <optional>
#include <string>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct RunSection {
  std::string name;
  std::int64_t seed = 1;
  std::int64_t steps = 1000;
  std::string out;
  std::string device = "cpu";
  std::optional<Bytes> memory_limit;
  std::optional<std::int64_t> threads_per_rank;
  std::string isa = "auto";

  void fields(auto& v) {
    v("name", name, "names the run; default: the configuration file's name");
    v("seed", seed, "of initial weights, order of the data and dropout");
    v("steps", steps, "optimizer steps of the whole run, >= 1");
    v("out", out, "the run's folder; default: runs/NAME");
    v("device", device, "cpu, cuda or cuda:N");
    v("memory_limit", memory_limit, "bytes a rank may allocate");
    v("threads_per_rank", threads_per_rank,
      "default: usable cores / ranks on this host, at least 1");
    v("isa", isa, "the highest instruction set to use",
      one_of{"auto", "base", "avx2", "avx512", "avx512bf16"});
  }

  void validate() const {
    check_field(steps >= 1, "steps", "expected >= 1, got", steps);
    check_available("device", device, {"cpu"});
    check_field(!memory_limit || memory_limit->count > 0, "memory_limit", "expected > 0");
    check_field(!threads_per_rank || (*threads_per_rank >= 1 && *threads_per_rank <= 4096),
                "threads_per_rank", "expected 1 to 4096, got", threads_per_rank.value_or(0));
  }

  bool operator==(const RunSection&) const = default;
};

}  // namespace sherd
