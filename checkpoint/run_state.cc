#include "checkpoint/run_state.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"

namespace sherd {

namespace {

constexpr int64_t kFormatVersion = 1;
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kUnfinished = ".unfinished-";  // removed by the next save
constexpr uint64_t kMaxStateBytes = 256 << 20;  // a vocabulary may be long, a whole disk may not
// Room for folders, block sizes and the journal beyond the files themselves.
constexpr uint64_t kSlackBytes = 1 << 20;

const char* const kModel = "/model.safetensors";
const char* const kOptimizer = "/optimizer.safetensors";
const char* const kState = "/state.json";
const char* const kComplete = "/COMPLETE";

template <class... A>
void want(bool ok, Site site, const A&... a) {
  if (!ok) fail_as(ErrorKind::io, site, a...);
}

std::string bytes_text(uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

/// The step in "step-00000100"; nothing for other names.
std::optional<int64_t> step_of(const std::string& name) {
  const std::string digits = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : "";
  if (digits.empty() || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(digits);
}

struct StepFolder {
  int64_t step;
  std::string path;
};

/// The folders named as checkpoints, newest first.
std::vector<StepFolder> step_folders(FileSystem& files, const std::string& folder) {
  std::vector<StepFolder> found;
  for (const std::string& name : files.list(folder))
    if (const auto step = step_of(name)) found.push_back({*step, folder + '/' + name});
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.step > b.step; });
  return found;
}

std::vector<NamedTensor> state_tensors(std::span<const Slot> slots) {
  std::vector<NamedTensor> tensors;
  for (const Slot& slot : slots)
    for (const SlotState& state : slot.state)
      tensors.push_back({slot.name + '.' + state.name, state.tensor});
  return tensors;
}

/// What COMPLETE says: sizes of the files beside it, and the hash of state.json.
std::string seal_text(uint64_t model_bytes, uint64_t optimizer_bytes, const std::string& state) {
  return Json(Json::Object{{"model_bytes", model_bytes},
                           {"optimizer_bytes", optimizer_bytes},
                           {"state_sha256", hex(sha256(state))}})
      .text();
}

void write_text(FileSystem& files, const std::string& path, const std::string& text) {
  const auto file = files.create(path);
  file->append(text);
  file->commit();
}

/// Where a folder is named until it is whole, and from when it begins to go.
std::string unfinished_path(const std::string& folder, int64_t step) {
  return folder + '/' + std::string(kUnfinished) + checkpoint_name(step);
}

/// All but `keep` complete checkpoints go: `saved` stays, and the newest of the others. None of
/// them is ever half there.
void remove_old(FileSystem& files, const std::string& folder, const std::string& saved, int keep) {
  if (keep <= 0) return;
  int complete = 1;
  for (const auto& [step, path] : step_folders(files, folder)) {
    // A run that went back to an earlier step has newer ones from before.
    if (path == saved || find_damage(path) || ++complete <= keep) continue;
    const std::string going = unfinished_path(folder, step);
    files.replace_folder(path, going);
    files.remove(going);
  }
}

void remove_unfinished(FileSystem& files, const std::string& folder) {
  for (const std::string& name : files.list(folder))
    if (name.starts_with(kUnfinished)) files.remove(folder + '/' + name);
}

/// A file has exactly the tensors of `wanted`, and they are read in place.
void load_exactly(const std::string& path, const std::vector<NamedTensor>& wanted,
                  const std::string& way_out) {
  const SafetensorsReader reader(path);
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : wanted) {
    names.insert(name);
    const SafetensorsEntry* entry = reader.find(name);
    want(entry != nullptr, "the checkpoint does not have a tensor of this run:", path, name,
         describe(tensor) + way_out);
    want(entry->dtype == tensor.dtype() && entry->shape == tensor.shape(),
         "a tensor of the checkpoint does not fit this run:", path, name, "is", entry->dtype,
         entry->shape, "there and", describe(tensor), "here" + way_out);
  }
  for (const auto& entry : reader.entries())
    want(names.contains(entry.name), "the checkpoint has a tensor that this run does not:", path,
         entry.name, entry.dtype, detail::concat(entry.shape, way_out));
  for (const auto& [name, tensor] : wanted) reader.read_into(name, tensor);
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

RunState parse_run_state(std::string_view json) {
  const Json root = Json::parse(json, 2);
  const int64_t version = root.at("format_version").integer();
  want(version == kFormatVersion, "the format version is", version, "and this program reads",
       kFormatVersion, version > kFormatVersion ? "; it was saved by a newer one" : "");
  const auto count = [&](const char* name) {
    const int64_t value = root.at(name).integer();
    want(value >= 0, name, "is negative:", value);
    return value;
  };
  RunState state;
  state.step = count("step");
  state.optimizer_steps = count("optimizer_steps");
  state.tokens = count("tokens");
  state.samples = count("samples");
  state.seed = root.at("seed").unsigned_integer();
  if (const Json* scale = root.find("loss_scale")) {
    state.loss_scale = {scale->at("value").number(), scale->at("clean_steps").integer()};
    want(state.loss_scale->value > 0 && state.loss_scale->clean_steps >= 0,
         "the loss scale makes no sense:", state.loss_scale->value);
  }
  state.config = root.at("config").string();
  state.tokenizer = root.at("tokenizer").string();
  state.isa = root.at("isa").string();
  return state;
}

std::string run_state_text(const RunState& state) {
  Json::Object o{{"format_version", kFormatVersion},
                 {"step", state.step},
                 {"optimizer_steps", state.optimizer_steps},
                 {"tokens", state.tokens},
                 {"samples", state.samples},
                 {"seed", state.seed}};
  if (state.loss_scale)
    o.emplace_back("loss_scale", Json::Object{{"value", state.loss_scale->value},
                                              {"clean_steps", state.loss_scale->clean_steps}});
  o.emplace_back("isa", state.isa);
  o.emplace_back("tokenizer", state.tokenizer);
  o.emplace_back("config", state.config);
  return Json(std::move(o)).text() + '\n';
}

std::string save_run_state(FileSystem& files, const std::string& folder, const RunState& state,
                           const std::vector<NamedTensor>& model, std::span<const Slot> slots,
                           int keep) {
  const std::string path = folder + '/' + checkpoint_name(state.step);
  const Context in("save ", path);
  const auto optimizer = state_tensors(slots);
  const std::string text = run_state_text(state);
  const auto model_bytes = static_cast<uint64_t>(safetensors_bytes(model));
  const auto optimizer_bytes = static_cast<uint64_t>(safetensors_bytes(optimizer));
  const std::string seal = seal_text(model_bytes, optimizer_bytes, text);

  files.make_folder(folder);
  remove_unfinished(files, folder);
  const uint64_t needed = model_bytes + optimizer_bytes + text.size() + seal.size() + kSlackBytes;
  const uint64_t available = files.available_bytes(folder);
  want(needed <= available, "the disk is too full for this checkpoint: it needs",
       bytes_text(needed) + ", free are",
       bytes_text(available) +
           "; make room, keep fewer ([checkpoint] keep), or save elsewhere ([checkpoint] dir)");

  const std::string unfinished = unfinished_path(folder, state.step);
  try {
    files.make_folder(unfinished);
    write_safetensors(files, unfinished + kModel, model);
    write_safetensors(files, unfinished + kOptimizer, optimizer);
    write_text(files, unfinished + kState, text);
    write_text(files, unfinished + kComplete, seal);
    files.sync_folder(unfinished);
    files.replace_folder(unfinished, path);
    files.sync_folder(folder);
  } catch (...) {
    // The first failure is the one to report; what this leaves, the next save removes.
    try {
      files.remove(unfinished);
    } catch (const Error&) {
    }
    throw;
  }
  remove_old(files, folder, path, keep);
  return path;
}

std::optional<std::string> find_damage(const std::string& path) {
  try {
    const Json seal = Json::parse(read_file(path + kComplete, 1 << 16), 2);
    for (const auto& [file, key] :
         {std::pair(kModel, "model_bytes"), std::pair(kOptimizer, "optimizer_bytes")}) {
      const uint64_t wanted = seal.at(key).unsigned_integer();
      const uint64_t size = file_stamp(path + file).size;
      if (size != wanted)
        return detail::concat(path, file, " has ", size, " bytes instead of ", wanted);
    }
    if (hex(sha256(read_file(path + kState, kMaxStateBytes))) != seal.at("state_sha256").string())
      return path + kState + " is not as it was written";
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

LatestCheckpoint latest_checkpoint(FileSystem& files, const std::string& folder) {
  LatestCheckpoint latest;
  for (const auto& [step, path] : step_folders(files, folder)) {
    const auto damage = find_damage(path);
    if (!damage) {
      latest.path = path;
      break;
    }
    latest.skipped.push_back(path + ": " + *damage);
  }
  return latest;
}

RunState load_run_state(const std::string& path) {
  if (const auto damage = find_damage(path))
    fail_as(ErrorKind::io, "not a complete checkpoint:", path + ":", *damage);
  const Context in(path, kState);
  return parse_run_state(read_file(path + kState, kMaxStateBytes));
}

void load_model(const std::string& path, const std::vector<NamedTensor>& model) {
  load_exactly(path + kModel, model,
               "; go on with the [model] and the tokenizer it was saved with (they are in its "
               "state.json), or begin a new run with another --out");
}

void load_optimizer(const std::string& path, const Optimizer& optimizer, std::span<Slot> slots) {
  for (Slot& slot : slots) optimizer.prepare(slot);
  load_exactly(path + kOptimizer, state_tensors(slots),
               "; go on with the [optim] and [precision] it was saved with, or begin a new run "
               "with another --out");
}

std::string check_resume(const std::string& path, const RunState& saved, const RunState& now) {
  check(saved.tokenizer == now.tokenizer,
        "the tokenizer is not the one of the checkpoint, so its tokens mean something else:", path,
        "; go on with the same [data] files and tokenizer, or begin a new run with another --out");
  if (saved.isa == now.isa) return "";
  return detail::concat(path, " was saved by a run on ", saved.isa, ", this one runs on ", now.isa,
                        ": the results will differ in the last bits (run.isa=\"", saved.isa,
                        "\" avoids it)");
}

}  // namespace sherd
