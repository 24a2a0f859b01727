// What every command that reads a configuration takes: the file, --set, and short forms of --set.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace CLI {
class App;
}

namespace sherd {

struct ConfigOptions {
  std::string path;
  std::vector<std::string> sets;    ///< as given: "a.b=v"
  std::vector<std::string> shorts;  ///< from --ranks and its like; they win

  /// throws usage naming file, line, column and key
  RunConfig load() const;
};

/// `options` must outlive the parsing.
void add_config_options(CLI::App& command, ConfigOptions& options);

}  // namespace sherd
