#include "train/trained_model.h"

#include "base/error.h"
#include "checkpoint/run_state.h"
#include "train/find_checkpoint.h"
#include "train/make_model.h"

namespace sherd {
namespace {

/// Rows of the token table, which the configuration may leave to the data.
std::int64_t vocab_in(const std::string& checkpoint) {
  const SafetensorsReader file(checkpoint + "/model.safetensors");
  const SafetensorsEntry* table = file.find("wte.weight");
  if (table == nullptr || table->shape.size() != 2)
    fail_as(ErrorKind::io, "there is no token table wte.weight in", file.path());
  return table->shape[0];
}

}  // namespace

TrainedModel::TrainedModel(const std::string& path, const RuntimePtr& runtime) : tape_(runtime) {
  const std::string checkpoint = find_checkpoint(path).path;
  const RunState state = load_run_state(checkpoint);
  config_ = read_run_config(state.config, checkpoint);
  if (!state.tokenizer.empty()) tokenizer_ = parse_tokenizer(state.tokenizer);
  model_ = make_model(tape_, config_, vocab_in(checkpoint));
  std::vector<NamedTensor> tensors;
  for (const auto& p : parameters(*model_)) tensors.push_back({p.name, p.parameter.value()});
  load_model(checkpoint, tensors);
}

}  // namespace sherd
