// Trainers of small runs, alone or on thread ranks, and what they leave.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/support/small_run.h"
#include "third_party/catch2/test.h"
#include "train/trainer.h"

namespace sherd::test {

inline TrainerOptions options_of(const SmallRun& small) {
  TrainerOptions options;
  options.cache = small.cache();
  return options;
}

inline std::vector<Json> metrics(const SmallRun& small, const std::string& name) {
  std::vector<Json> lines;
  std::istringstream in(read_file(small.out(name) + "/metrics.jsonl"));
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

/// A run on thread ranks; rank 0's metrics are in the folder.
inline void train_ranks(const SmallRun& small, const std::string& name,
                        const std::vector<std::string>& more, const std::string& resume = "",
                        std::int64_t stop_after = 0) {
  const RunConfig config = small.config(name, more);
  run_thread_ranks(rank_options(config), [&](Rank& rank) {
    TrainerOptions options = options_of(small);
    options.resume = resume;
    Trainer* running = nullptr;
    options.should_stop = [&] { return running->steps_done() == stop_after; };
    Trainer trainer(config, options, rank);
    running = &trainer;
    std::ostringstream shown;
    trainer.run(shown);
  });
}

/// What a run learned, which no strategy changes.
inline void require_equal_losses(const SmallRun& small, const std::string& a,
                                 const std::string& b) {
  const auto x = metrics(small, a), y = metrics(small, b);
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    for (const char* key : {"loss", "grad_norm", "lr", "tokens", "skipped"}) {
      INFO("step " << i + 1 << ' ' << key);
      REQUIRE(x[i].at(key).text(0) == y[i].at(key).text(0));
    }
}

template <class F>
std::string error_of(const F& body, ErrorKind kind) {
  try {
    body();
  } catch (const Error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return "no error";
}

}  // namespace sherd::test
