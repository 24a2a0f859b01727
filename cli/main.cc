// The command line: names the command and hands over.
#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  CLI::App app{
      "Sherd trains models whose state does not fit, and shows what each way of sharding costs.",
      "sherd"};
  app.set_version_flag("--version", "sherd 0.1.0");
  app.require_subcommand();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
}
