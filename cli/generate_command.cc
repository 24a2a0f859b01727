// sherd generate: text from a checkpoint.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"
#include "train/generate.h"
#include "train/setup.h"
#include "train/trained_model.h"

namespace sherd {
namespace {

struct GenerateCommand {
  std::string checkpoint;
  std::string prompt = "\n";
  GenerateOptions options;
  std::int64_t threads = 0;

  void run() const {
    options.sampling.validate();
    RunSection run;
    if (threads > 0) run.threads_per_rank = threads;
    const TrainedModel trained(checkpoint, make_runtime(run));
    check(trained.tokenizer() != nullptr,
          "the run was trained on token files and has no tokenizer, so there is no text");
    std::cout << prompt;
    generate(trained.model(), *trained.tokenizer(), prompt, options,
             [](const std::string& text) { std::cout << text << std::flush; });
    std::cout << '\n';
  }
};

}  // namespace

void add_generate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "generate text from a checkpoint");
  const auto c = std::make_shared<GenerateCommand>();
  SamplingOptions& sampling = c->options.sampling;
  command->add_option("CHECKPOINT", c->checkpoint, "the folder of a checkpoint or of a run")
      ->required();
  command->add_option("--prompt", c->prompt, "the text to go on from; default: a new line");
  command->add_option("--tokens", c->options.tokens, "how many to generate")->capture_default_str();
  command->add_option("--temperature", sampling.temperature, "0: always the most likely token")
      ->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "only the K most likely; 0: all")
      ->capture_default_str();
  command
      ->add_option("--top-p", sampling.top_p, "only the fewest that together have this probability")
      ->capture_default_str();
  command->add_option("--seed", c->options.seed, "of the choices")->capture_default_str();
  command->add_option("--threads", c->threads, "default: the usable cores")
      ->check(CLI::Range(1, 4096));
  command->callback([c] { c->run(); });
}

}  // namespace sherd
