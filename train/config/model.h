// [model]: the shape of the model. Legend: C = d_model, H = heads, F = d_ff, V = vocab, T =
// context.
#pragma once

#include <optional>
#include <string>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct ModelSection {
  std::string arch = "gpt2";
  std::string preset = "none";
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::optional<std::int64_t> kv_heads;
  std::int64_t d_model = 128;
  std::optional<std::int64_t> d_ff;
  std::optional<std::int64_t> vocab;
  std::int64_t context = 64;
  double dropout = 0;
  bool tied = true;

  void fields(auto& v) {
    v("arch", arch, "the architecture", one_of{"mlp", "gpt2", "llama", "encoder", "vit"});
    v("preset", preset, "sizes of a known model; keys given beside it win",
      one_of{"none", "tiny", "nano", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"});
    v("layers", layers, "blocks, >= 1");
    v("heads", heads, "attention heads; divides d_model");
    v("kv_heads", kv_heads, "heads of keys and values; divides heads; default: heads");
    v("d_model", d_model, "channels");
    v("d_ff", d_ff, "channels inside the feed-forward layer; default: 4 d_model");
    v("vocab", vocab, "rows of the token embedding; default: the tokenizer's");
    v("context", context, "tokens a sample, >= 1");
    v("dropout", dropout, "share of activations dropped, 0 <= p < 1");
    v("tied", tied, "the head shares the token embedding's weight");
  }

  void validate() const {
    check_available("arch", arch, {"gpt2"});
    check_size("layers", layers);
    check_size("heads", heads);
    check_size("d_model", d_model);
    check_size("d_ff", num_ff());
    check_size("context", context);
    if (vocab) check_size("vocab", *vocab);
    if (arch != "mlp") {
      check_field(d_model % heads == 0, "heads", heads, "does not divide d_model =", d_model);
      check_size("kv_heads", num_kv_heads());
      check_field(heads % num_kv_heads() == 0, "kv_heads", num_kv_heads(),
                  "does not divide heads =", heads);
      check_field(arch != "gpt2" || num_kv_heads() == heads, "kv_heads", num_kv_heads(),
                  "is not available in this version for gpt2; available: heads =", heads);
    }
    check_field(dropout >= 0 && dropout < 1, "dropout", "expected 0 <= p < 1, got", dropout);
  }

  std::int64_t num_kv_heads() const { return kv_heads.value_or(heads); }
  std::int64_t num_ff() const { return d_ff.value_or(4 * d_model); }

  bool operator==(const ModelSection&) const = default;

 private:
  /// Sizes fit 31 bits, so that their products fit 63.
  static void check_size(const char* field, std::int64_t size) {
    check_field(size >= 1 && size <= INT32_MAX, field, "expected 1 to 2147483647, got", size);
  }
};

}  // namespace sherd
