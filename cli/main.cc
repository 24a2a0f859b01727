// The command line: names the command and hands over.
// Exit: 0 done, 1 failed while running, 2 wrong use.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"

namespace {

/// CLI11 would only say that a subcommand is required.
void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  sherd::fail("there is no command", argv[1], "- the nearest is",
              sherd::nearest_word(argv[1], names));
}

int run(int argc, char** argv) {
  CLI::App app{
      "Sherd trains models whose state does not fit, and shows what each way of sharding costs.",
      "sherd"};
  app.set_version_flag("--version", "sherd 0.1.0");
  app.require_subcommand(1);
  sherd::add_train(app);
  sherd::add_generate(app);
  sherd::add_checkpoint(app);
  sherd::add_tokenize(app);
  sherd::add_config(app);
  sherd::add_doctor(app);
  sherd::add_bench(app);
  sherd::add_unavailable(app);
  check_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const sherd::Error& e) {
    std::cout.flush();
    std::cerr << "sherd: " << e.what() << '\n';
    return e.kind() == sherd::ErrorKind::usage ? 2 : 1;
  } catch (const std::exception& e) {
    std::cout.flush();
    std::cerr << "sherd: " << e.what() << '\n';
    return 1;
  }
}
