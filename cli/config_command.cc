// sherd config: the configuration as it will be run, and what its keys mean.
#include <CLI/CLI.hpp>
#include <iostream>

#include "base/text.h"
#include "base/toml.h"
#include "cli/commands.h"
#include "cli/config_options.h"

namespace sherd {
namespace {

/// The lines of the help about `key`: "optim", "optim.lr" or "lr"; all for "".
std::string explain(const std::string& key) {
  const std::string help = toml_help<RunConfig>();
  if (key.empty()) return help;
  // A heading is "[optim]  …"; a key two lines, "optim.lr = …" and what it means.
  std::istringstream lines(help);
  std::string out;
  std::vector<std::string> keys;
  bool wanted = false, whole_section = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) {
      wanted = whole_section = line.starts_with('[' + key + ']');
    } else if (!line.starts_with(' ')) {
      keys.push_back(line.substr(0, line.find(' ')));
      wanted = whole_section || keys.back() == key || keys.back().ends_with('.' + key);
    }
    if (wanted) out += line + '\n';
  }
  check(!out.empty(), "there is no key or section", key, "- the nearest is",
        nearest_word(key, keys));
  return out;
}

void refuse(CLI::App& config, const std::string& name) {
  CLI::App* command = config.add_subcommand(name, "not available in this version");
  command->allow_extras();
  command->callback([name] { fail("not available in this version: config", name); });
}

}  // namespace

void add_config(CLI::App& app) {
  CLI::App* command = app.add_subcommand("config", "show or explain a configuration");
  command->require_subcommand(1);

  CLI::App* show = command->add_subcommand("show", "the configuration with all its keys");
  const auto options = std::make_shared<ConfigOptions>();
  add_config_options(*show, *options);
  show->callback([options] { std::cout << write_toml(options->load()); });

  CLI::App* what = command->add_subcommand("explain", "what keys mean, and their defaults");
  const auto key = std::make_shared<std::string>();
  what->add_option("KEY", *key, "a key or a section, such as optim.lr; default: all");
  what->callback([key] { std::cout << explain(*key); });

  refuse(*command, "from-deepspeed");
  refuse(*command, "from-accelerate");
}

}  // namespace sherd
