#include "cli/config_options.h"

#include <CLI/CLI.hpp>

namespace sherd {

RunConfig ConfigOptions::load() const {
  std::vector<std::string> all = sets;
  all.insert(all.end(), shorts.begin(), shorts.end());
  return load_run_config(path, all);
}

void add_config_options(CLI::App& command, ConfigOptions& options) {
  command.add_option("CONFIG", options.path, "a configuration, such as examples/gpt_kjv.toml")
      ->required();
  command.add_option("--set", options.sets, "KEY=VALUE: overrides a key of the configuration")
      ->allow_extra_args(false)
      ->take_all();
  const auto add_short = [&](const char* flag, const std::string& key) {
    command.add_option_function<std::string>(
        flag, [&options, key](const std::string& v) { options.shorts.push_back(key + '=' + v); },
        "short for --set " + key + "=…");
  };
  add_short("--out", "run.out");
  add_short("--device", "run.device");
  add_short("--threads-per-rank", "run.threads_per_rank");
  add_short("--ranks", "dist.ranks");
  add_short("--engine", "dist.engine");
  add_short("--strategy", "dist.strategy");
}

}  // namespace sherd
