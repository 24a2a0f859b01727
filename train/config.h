// The typed configuration of a run; every key of a .toml file and of --set is a field here.
// Invariant: a RunConfig that validate() accepts is one that this version runs as written.
#pragma once

#include <span>
#include <string>

#include "train/config/checkpoint.h"
#include "train/config/data.h"
#include "train/config/dist.h"
#include "train/config/log.h"
#include "train/config/model.h"
#include "train/config/offload.h"
#include "train/config/optim.h"
#include "train/config/precision.h"
#include "train/config/run.h"
#include "train/config/train.h"

namespace sherd {

struct RunConfig {
  RunSection run;
  ModelSection model;
  DataSection data;
  TrainSection train;
  OptimSection optim;
  PrecisionSection precision;
  DistSection dist;
  OffloadSection offload;
  CheckpointSection checkpoint;
  LogSection log;

  void fields(auto& v) {
    v("run", run, "what is run, where and on what");
    v("model", model, "the shape of the model");
    v("data", data, "what is trained on and validated with");
    v("train", train, "batches, evaluation, clipping");
    v("optim", optim, "the optimizer and its learning rate");
    v("precision", precision, "types of values");
    v("dist", dist, "ranks, what they share and how they talk");
    v("offload", offload, "where state rests");
    v("checkpoint", checkpoint, "when state is saved");
    v("log", log, "what is written beside metrics");
  }

  /// What concerns more than one section.
  void validate() const;

  /// Samples a step over all ranks.
  std::int64_t samples_per_step() const {
    return train.micro_batch * train.num_accumulate(dist.ranks) * dist.ranks;
  }

  bool operator==(const RunConfig&) const = default;
};

/// The file, over its preset's sizes, then overrides "a.b=v"; run.name and run.out are filled in.
/// throws usage naming file, line, column and key; io if the file cannot be read
RunConfig load_run_config(const std::string& path, std::span<const std::string> overrides = {});

/// The same of a text; `source` names it in errors.
RunConfig read_run_config(std::string_view text, const std::string& source,
                          std::span<const std::string> overrides = {});

}  // namespace sherd
