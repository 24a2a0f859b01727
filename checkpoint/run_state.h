// A whole run in one folder, saved and resumed by one process:
//   checkpoints/step-00000100/
//     model.safetensors       parameters by name
//     optimizer.safetensors   "NAME.m", "NAME.v", "NAME.master": the optimizer's state by parameter
//     state.json              format version, progress, seed, configuration, tokenizer, ISA
//     COMPLETE                written last: each file's size, and state.json's SHA-256
// Invariant: the folder is written beside, synced and renamed, so a reader finds a complete
// checkpoint or none, and a failed save leaves the older ones as they were.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/file_system.h"
#include "checkpoint/safetensors.h"
#include "optim/loss_scale.h"
#include "optim/optimizer.h"

namespace sherd {

/// What a run is beside its tensors.
struct RunState {
  int64_t step = 0;             ///< optimizer steps of the run, the skipped ones included
  int64_t optimizer_steps = 0;  ///< Optimizer::steps()
  int64_t tokens = 0;           ///< trained on so far
  int64_t samples = 0;          ///< position in the data: the next sample's number
  uint64_t seed = 0;
  std::optional<LossScale::State> loss_scale;  ///< where there is a dynamic one
  std::string config;                          ///< the resolved TOML
  std::string tokenizer;                       ///< Tokenizer::json()
  std::string isa;                             ///< name_of(Isa): bits are promised for one

  bool operator==(const RunState&) const = default;
};

/// "step-00000100"
std::string checkpoint_name(int64_t step);

/// state.json. Throws io for anything but what state_text() writes; a newer format version says so.
RunState parse_run_state(std::string_view json);
std::string run_state_text(const RunState& state);

/// Writes FOLDER/step-…, in place of one of the same step, then removes complete ones but for this
/// and the newest, `keep` in all (0: none is removed). Returns its path.
/// tensors of the slots' state are saved under the slots' names; gradients are not saved
/// throws io naming path and reason; before anything is written if the disk has too little room
std::string save_run_state(FileSystem& files, const std::string& folder, const RunState& state,
                           const std::vector<NamedTensor>& model, std::span<const Slot> slots,
                           int keep);

/// The newest complete checkpoint in a folder.
struct LatestCheckpoint {
  std::optional<std::string> path;
  std::vector<std::string> skipped;  ///< newer ones that are not complete, as "PATH: why"
};
LatestCheckpoint latest_checkpoint(FileSystem& files, const std::string& folder);

/// Why the checkpoint at `path` is not complete: a file is missing or has another size than
/// COMPLETE says, state.json another hash. Nothing: it is complete.
std::optional<std::string> find_damage(const std::string& path);

/// state.json of a complete checkpoint; throws io, naming the path, for any other.
RunState load_run_state(const std::string& path);

/// Reads every tensor of `model` in place. Throws io, naming the tensor, both shapes and what to
/// do, unless the checkpoint has exactly these.
void load_model(const std::string& path, const std::vector<NamedTensor>& model);

/// prepare() for every slot, then its state as saved. Throws io unless the checkpoint has exactly
/// that state: it was saved with another optimizer.
void load_optimizer(const std::string& path, const Optimizer& optimizer, std::span<Slot> slots);

/// For a run that goes on from `saved`: throws usage if the tokenizer is another one, naming
/// `path`; returns a line to print if the instruction set is another (bits will differ), else "".
std::string check_resume(const std::string& path, const RunState& saved, const RunState& now);

}  // namespace sherd
