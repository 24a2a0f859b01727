// sherd train: runs a configuration.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/toml.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/mpi_start.h"
#include "dist/comm/mpi_ranks.h"
#include "train/cache_folder.h"
#include "train/generate.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace sherd {
namespace {

struct TrainCommand {
  ConfigOptions config;
  std::string resume;
  std::string deepspeed, accelerate;
  std::int64_t narrate = 0;
  bool print_param_groups = false;
  bool quiet = false;

  void run() const;

 private:
  /// On one rank: 0 speaks on the terminal, the others each in a file.
  void train(Trainer& trainer, const Interrupt& interrupt) const;
  void train(Trainer& trainer, const Interrupt& interrupt, Log& log, std::ostream& out) const;
};

void describe_run(Log& log, Trainer& trainer) {
  const RunConfig& c = trainer.config();
  const ParameterCounts counts = count_parameters(trainer.model());
  log.info(c.run.name, ": ", c.model.arch, ", ", counts.total, " parameters, vocabulary ",
           trainer.data().vocab, ", context ", c.model.context);
  log.info("data: ", trainer.data().train.size(), " tokens, ", trainer.data().validation.size(),
           " for validation");
  log.info("compute ", c.precision.compute, ", master ", c.precision.master, ", reduce ",
           c.precision.reduce, ", moments ", c.precision.moments, "; ",
           trainer.runtime()->pool().threads(), " threads, ", name_of(trainer.runtime()->isa()));
  log.info("a step: ", c.train.micro_batch, " samples x ", trainer.num_micro_batches(),
           " micro-batches x ", c.dist.ranks, " ranks = ", c.samples_per_step(), " samples of ",
           c.model.context, " tokens; an epoch has ", trainer.samples_per_epoch(),
           ", and a step that reaches its end takes the rest from the next");
  for (const auto& rule : scaling_rules(c)) log.info(rule);
  if (c.dist.ranks > 1)
    log.info(c.dist.ranks, " ranks as ", c.dist.engine, ", ", c.dist.strategy, ", ",
             trainer.sharded().units().size(), " units by ", c.dist.group,
             trainer.rank() == 0 ? "; the other ranks' lines are in " + rank_logs(c.run.out) : "");
  if (!trainer.plan().why_units.empty()) log.info("dist.group = auto: ", trainer.plan().why_units);
  for (const auto& warning : trainer.warnings()) log.warn(warning);
  if (trainer.steps_done() > 0) log.info("resumed after step ", trainer.steps_done());
}

void print_memory(Log& log, const MemoryPeak& peak) {
  log.info("memory at its peak: ", peak.bytes, " bytes");
  for (int i = 0; i < kCategories; ++i)
    if (peak.by_category[static_cast<std::size_t>(i)] > 0)
      log.info("  ", name_of(static_cast<Category>(i)), " ",
               peak.by_category[static_cast<std::size_t>(i)]);
  std::string where;
  for (const auto& frame : peak.where) where += (where.empty() ? "" : ": ") + frame;
  log.info("  at ", where.empty() ? "the start" : where);
}

void print_sample(Trainer& trainer) {
  const LogSection& log = trainer.config().log;
  if (log.sample == 0 || !trainer.data().tokenizer) return;
  // Every rank generates, the parameters being gathered by all; rank 0 shows it.
  std::ostream out(trainer.rank() == 0 ? std::cout.rdbuf() : nullptr);
  trainer.sharded().unshard();
  out << "\n" << log.sample_prompt;
  GenerateOptions options;
  options.tokens = log.sample;
  options.seed = static_cast<std::uint64_t>(trainer.config().run.seed);
  generate(trainer.model(), *trainer.data().tokenizer, log.sample_prompt, options,
           [&](const std::string& text) { out << text << std::flush; });
  out << '\n';
  trainer.sharded().reshard();
}

void TrainCommand::run() const {
  check(deepspeed.empty(), "--deepspeed is not available in this version");
  check(accelerate.empty(), "--accelerate is not available in this version");
  RunConfig run_config = config.load();
  const bool mpi = run_config.dist.engine == "mpi";
  if (mpi) {
    const int started = start_mpi_ranks(run_config.dist.ranks, "dist.engine = threads");
    check(run_config.dist.ranks == 1 || run_config.dist.ranks == started, "dist.ranks is",
          run_config.dist.ranks, "but mpirun started", started);
    run_config.dist.ranks = started;
    run_config.validate();
  }
  const Interrupt interrupt;
  const TrainerOptions options{.resume = resume,
                               .cache = default_cache_folder(),
                               .progress = quiet ? ProgressMode::quiet : progress_mode(1),
                               .narrate = narrate,
                               .should_stop = [&] { return interrupt.requested(); }};
  const auto on_rank = [&](Rank& rank) {
    Trainer trainer(run_config, options, rank);
    train(trainer, interrupt);
  };
  if (mpi) {
    run_mpi_ranks(rank_options(run_config), on_rank);
  } else if (run_config.dist.ranks > 1) {
    run_thread_ranks(rank_options(run_config), on_rank);
  } else {
    Trainer trainer(run_config, options);
    train(trainer, interrupt);
  }
}

void TrainCommand::train(Trainer& trainer, const Interrupt& interrupt) const {
  const LogLevel level = quiet ? LogLevel::quiet : LogLevel::normal;
  if (trainer.rank() == 0) {
    Log log(std::cout, "", level);
    train(trainer, interrupt, log, std::cout);
    return;
  }
  std::ofstream file = open_rank_log(trainer.config().run.out, trainer.rank());
  Log log(file, detail::concat("rank ", trainer.rank()), level);
  try {
    train(trainer, interrupt, log, file);
  } catch (const std::exception& e) {
    log.warn("ends with an error: ", e.what());
    throw;
  }
}

void TrainCommand::train(Trainer& trainer, const Interrupt& interrupt, Log& log,
                         std::ostream& out) const {
  describe_run(log, trainer);
  if (print_param_groups) out << param_group_table(trainer.groups()) << std::flush;
  trainer.run(out);
  if (trainer.config().log.memory) print_memory(log, trainer.peak());
  if (trainer.finished()) {
    log.info("done; the run is in ", trainer.config().run.out);
    if (!interrupt.requested()) print_sample(trainer);
  } else {
    log.info(signal_name(interrupt.signal()), ": saved after step ", trainer.steps_done(),
             "; --resume latest goes on");
  }
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "train a model");
  const auto options = std::make_shared<TrainCommand>();
  add_config_options(*command, options->config);
  command->add_option("--resume", options->resume,
                      "latest, or the folder of a checkpoint or a run: go on from there");
  command->add_option("--deepspeed", options->deepspeed, "not available in this version");
  command->add_option("--accelerate", options->accelerate, "not available in this version");
  command
      ->add_option("--narrate", options->narrate,
                   "tell what happens to parameters in the first so many steps, in words")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--print-param-groups", options->print_param_groups,
                    "which parameters decay, before training");
  command->add_flag_callback(
      "--smoke",
      [options] {
        for (const char* set : {"run.steps=3", "optim.warmup=1", "train.eval_every=3",
                                "train.eval_batches=1", "checkpoint.every=0", "log.sample=0"})
          options->config.shorts.emplace_back(set);
      },
      "three steps and one batch of validation: whether it runs at all");
  command->add_flag("--quiet", options->quiet, "no progress");
  command->footer("Keys of a configuration, with their defaults:\n\n" + toml_help<RunConfig>());
  command->callback([options] { options->run(); });
}

}  // namespace sherd
