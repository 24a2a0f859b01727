// A small GPT on a small text, for tests that train: a step takes a few milliseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/support/temp_folder.h"
#include "train/config.h"

namespace sherd::test {

/// Sentences of a few words in changing order: easy to learn, and no two epochs' batches alike.
inline std::string small_text(std::size_t bytes) {
  const std::vector<std::string> words = {"the",  "light", "and",   "water", "was",   "upon",
                                          "face", "of",    "earth", "in",    "begin", "day"};
  std::string text;
  std::uint64_t x = 1;
  while (text.size() < bytes) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    text += words[(x >> 33) % words.size()];
    text += (x >> 60) == 0 ? ".\n" : " ";
  }
  text.resize(bytes);
  return text;
}

/// A folder with the text, a cache and runs in it.
struct SmallRun {
  TempFolder folder;
  std::vector<std::string> overrides;

  explicit SmallRun(std::size_t text_bytes = 20000) {
    write_file(folder / "text.txt", small_text(text_bytes));
  }
  std::string cache() const { return folder / "cache"; }
  std::string out(const std::string& name) const { return folder / name; }

  /// 2 layers, 32 channels, context 16, 4 samples a micro-batch; `more` is of the form a.b=v.
  std::string toml() const {
    return "[run]\nsteps = 20\nthreads_per_rank = 2\n"
           "[model]\nlayers = 2\nheads = 2\nd_model = 32\ncontext = 16\n"
           "[data]\nfiles = [\"" +
           (folder / "text.txt") +
           "\"]\n"
           "[train]\nmicro_batch = 4\neval_every = 0\n"
           "[optim]\nlr = 3e-3\nwarmup = 1\n";
  }
  RunConfig config(const std::string& name, std::vector<std::string> more = {}) const {
    more.push_back("run.out=" + out(name));
    return read_run_config(toml(), "small.toml", more);
  }
};

}  // namespace sherd::test
