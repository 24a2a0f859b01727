// [data]: what is trained on, what is held out for validation, and in which order samples come.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "train/config/available.h"
#include "train/sampler.h"

namespace sherd {

struct DataSection {
  std::vector<std::string> files;
  std::string dataset = "none";
  std::optional<std::string> tokenizer;
  std::vector<std::string> val_files;
  std::optional<double> val_fraction;
  std::variant<bool, std::string> shuffle = true;

  void fields(auto& v) {
    v("files", files, "texts and token files (.bin); shell patterns");
    v("dataset", dataset, "a bundled text, instead of files", one_of{"none", "kjv"});
    v("tokenizer", tokenizer,
      "byte, char or bpe:FILE; default: byte for texts, none for token files");
    v("val_files", val_files, "validation data, instead of val_fraction");
    v("val_fraction", val_fraction,
      "the last share of the data is for validation, 0 <= f < 1; default 0.1");
    v("shuffle", shuffle,
      "true: each window once an epoch in shuffled order; false: in order of the files; "
      "\"random\": windows at "
      "random offsets, with replacement",
      one_of{"random"});
  }

  void validate() const {
    check_field(!(has_dataset() && !files.empty()), "dataset",
                "is instead of files; leave one out, or set it to none");
    check_field(has_dataset() || !files.empty(), "files",
                "expected at least one file, or data.dataset = \"kjv\"");
    if (tokenizer) {
      const std::string kind = tokenizer->starts_with("bpe:") ? "bpe" : *tokenizer;
      check_field(kind == "byte" || kind == "char" || kind == "bpe", "tokenizer",
                  "expected byte, char or bpe:FILE, got", *tokenizer);
      check_available("tokenizer", kind, {"byte", "char"});
    }
    check_field(!(val_fraction && !val_files.empty()), "val_fraction",
                "is instead of val_files; leave one out");
    check_field(held_out() >= 0 && held_out() < 1, "val_fraction", "expected 0 <= f < 1, got",
                held_out());
  }

  bool has_dataset() const { return dataset != "none"; }

  /// The share of `files` that is held out for validation.
  double held_out() const { return val_files.empty() ? val_fraction.value_or(0.1) : 0; }

  SampleOrder order() const {
    const bool* flag = std::get_if<bool>(&shuffle);
    if (flag == nullptr) return SampleOrder::random;
    return *flag ? SampleOrder::shuffled : SampleOrder::sequential;
  }

  bool operator==(const DataSection&) const = default;
};

}  // namespace sherd
