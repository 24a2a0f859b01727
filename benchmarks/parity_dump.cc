// Exports the first steps of a run for benchmarks/peers/quickstart_parity.py, which trains the same
// in PyTorch from the same weights and batches, and compares the loss of each step.
//   parity_dump CONFIG FOLDER [--steps 100] [--set a.b=v]…
#include <CLI/CLI.hpp>
#include <iostream>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "train/cache_folder.h"
#include "train/trainer.h"

namespace sherd {
namespace {

struct Options {
  std::string config, folder;
  std::vector<std::string> sets;
  std::int64_t steps = 100;
};

Json peer_config(const Trainer& trainer) {
  const RunConfig& c = trainer.config();
  return Json::Object{{"layers", c.model.layers},
                      {"heads", c.model.heads},
                      {"d_model", c.model.d_model},
                      {"vocab", trainer.data().vocab},
                      {"context", c.model.context},
                      {"lr", c.optim.lr},
                      {"betas", Json::Array{c.optim.betas[0], c.optim.betas[1]}},
                      {"eps", c.optim.eps},
                      {"weight_decay", c.optim.weight_decay},
                      {"warmup", c.optim.warmup},
                      {"schedule", c.optim.schedule},
                      {"min_lr", c.optim.min_lr},
                      {"steps", c.run.steps},
                      {"clip_norm", c.train.clip_norm}};
}

void write_weights(Trainer& trainer, FileSystem& files, const std::string& path) {
  std::vector<NamedTensor> weights;
  for (const auto& p : parameters(trainer.model()))
    weights.push_back({p.name, p.parameter.value().to(DType::f32)});
  write_safetensors(files, path, weights);
}

void dump(const Options& options) {
  std::vector<std::string> sets = options.sets;
  sets.push_back("run.out=" + options.folder);
  const RunConfig config = load_run_config(options.config, sets);
  check(config.model.dropout == 0 && config.optim.name == "adamw" && config.model.tied,
        "parity is with adamw, a tied head and no dropout");
  TrainerOptions trainer_options;
  trainer_options.cache = default_cache_folder();
  Trainer trainer(config, trainer_options);
  PosixFileSystem files;
  write_file(options.folder + "/config.json", peer_config(trainer).text() + '\n');
  write_weights(trainer, files, options.folder + "/init.safetensors");

  MetricsFile metrics(options.folder + "/metrics.jsonl", 0);
  std::vector<std::int32_t> tokens;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    for (std::int64_t g = 0; g < trainer.num_micro_batches(); ++g) {
      const auto rows = trainer.micro_batch(g);
      tokens.insert(tokens.end(), rows.begin(), rows.end());
    }
    metrics.append(trainer.step());
  }
  const Tensor batches = Tensor::from(trainer.runtime(),
                                      {options.steps, trainer.num_micro_batches(),
                                       config.train.micro_batch, config.model.context + 1},
                                      tokens);
  write_safetensors(files, options.folder + "/batches.safetensors", {{"tokens", batches}});
  std::cout << options.folder << ": " << options.steps << " steps\n";
}

int run(int argc, char** argv) {
  CLI::App app{"Exports the first steps of a run, to train the same elsewhere.", "parity_dump"};
  Options options;
  app.add_option("CONFIG", options.config, "a configuration")->required();
  app.add_option("FOLDER", options.folder, "a new folder for what is exported")->required();
  app.add_option("--steps", options.steps, "how many")->check(CLI::Range(1, 1000000));
  app.add_option("--set", options.sets, "KEY=VALUE")->allow_extra_args(false)->take_all();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  dump(options);
  return 0;
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  try {
    return sherd::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "parity_dump: " << e.what() << '\n';
    return 1;
  }
}
