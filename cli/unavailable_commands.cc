// Commands that are promised and not here yet: asking for one says so.
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"

namespace sherd {

void add_unavailable(CLI::App& app) {
  for (const char* name : {"compare", "plan", "trace"}) {
    CLI::App* command = app.add_subcommand(name, "not available in this version");
    command->allow_extras();
    command->callback([name] { fail("not available in this version:", name); });
  }
}

}  // namespace sherd
