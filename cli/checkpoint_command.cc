// sherd checkpoint: what a checkpoint holds.
#include <CLI/CLI.hpp>
#include <iostream>

#include "base/error.h"
#include "checkpoint/run_state.h"
#include "cli/commands.h"
#include "train/config.h"
#include "train/find_checkpoint.h"

namespace sherd {
namespace {

std::int64_t print_tensors(const std::string& path) {
  const SafetensorsReader file(path);
  std::int64_t elements = 0;
  for (const SafetensorsEntry& e : file.entries()) {
    std::cout << "  " << e.name << ' ' << e.dtype << ' ' << e.shape << '\n';
    elements += e.shape.numel();
  }
  return elements;
}

void inspect(const std::string& path) {
  const FoundCheckpoint found = find_checkpoint(path);
  for (const auto& why : found.skipped) std::cout << "skipped " << why << '\n';
  const RunState state = load_run_state(found.path);
  const RunConfig config = read_run_config(state.config, found.path);
  std::cout << found.path << "\n"
            << "run              " << config.run.name << " (" << config.model.arch << ")\n"
            << "steps            " << state.step << " of " << config.run.steps << "\n"
            << "tokens           " << state.tokens << "\n"
            << "samples          " << state.samples << "\n"
            << "seed             " << state.seed << "\n"
            << "tokenizer        " << config.data.tokenizer.value_or("default") << "\n"
            << "instruction set  " << state.isa << "\n"
            << "parameters\n";
  const std::int64_t parameters = print_tensors(found.path + "/model.safetensors");
  std::cout << "optimizer state\n";
  print_tensors(found.path + "/optimizer.safetensors");
  std::cout << parameters << " parameters\n";
}

}  // namespace

void add_checkpoint(CLI::App& app) {
  CLI::App* command = app.add_subcommand("checkpoint", "what a checkpoint holds");
  command->require_subcommand(1);
  CLI::App* show = command->add_subcommand("inspect", "progress and tensors");
  const auto path = std::make_shared<std::string>();
  show->add_option("CHECKPOINT", *path, "the folder of a checkpoint or of a run")->required();
  show->callback([path] { inspect(*path); });
  for (const std::string name : {"verify", "diff", "convert", "export", "import"}) {
    CLI::App* later = command->add_subcommand(name, "not available in this version");
    later->allow_extras();
    later->callback([name] { fail("not available in this version: checkpoint", name); });
  }
}

}  // namespace sherd
