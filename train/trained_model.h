// A trained model from its checkpoint, without what only training needs.
#pragma once

#include <memory>
#include <string>

#include "nn/models/language_model.h"
#include "train/config.h"
#include "train/tokenizer.h"

namespace sherd {

class TrainedModel {
 public:
  /// `path`: a checkpoint, or a run's folder, of which the newest is taken.
  /// throws usage if there is none; io if it is damaged
  TrainedModel(const std::string& path, const RuntimePtr& runtime);

  const RunConfig& config() const { return config_; }
  const LanguageModel& model() const { return *model_; }
  /// nullptr for a run on token files that bring no vocabulary.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }

 private:
  Tape tape_;
  RunConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<LanguageModel> model_;
};

}  // namespace sherd
