// [model]: the shape of the model. Legend: C = d_model, H = heads, F = d_ff, V = vocab, T =
// context.
#pragma once

#include <optional>
#include <string>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

/// How Llama 3 stretches rotary positions (autograd/ops/rotary.h).
struct RopeScalingSection {
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  std::int64_t original_context = 8192;

  void fields(auto& v) {
    v("factor", factor, "what low frequencies are divided by, >= 1");
    v("low_freq_factor", low_freq_factor, "turns in original_context below which all are, > 0");
    v("high_freq_factor", high_freq_factor, "turns above which none are, > low_freq_factor");
    v("original_context", original_context, "tokens, >= 1");
  }
  void validate() const {
    check_field(factor >= 1, "factor", "expected >= 1, got", factor);
    check_field(low_freq_factor > 0, "low_freq_factor", "expected > 0, got", low_freq_factor);
    check_field(high_freq_factor > low_freq_factor, "high_freq_factor",
                "expected > low_freq_factor =", low_freq_factor, "got", high_freq_factor);
    check_field(original_context >= 1, "original_context", "expected >= 1, got", original_context);
  }
  bool operator==(const RopeScalingSection&) const = default;
};

struct ModelSection {
  std::string arch = "gpt2";
  std::string preset = "none";
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::optional<std::int64_t> kv_heads = {};
  std::int64_t d_model = 128;
  std::optional<std::int64_t> d_ff = {};
  std::optional<std::int64_t> vocab = {};
  std::int64_t context = 64;
  double dropout = 0;
  bool tied = true;
  double rope_theta = 10000;
  std::optional<RopeScalingSection> rope_scaling = {};

  void fields(auto& v) {
    v("arch", arch,
      "the architecture; encoder is llama's that sees both sides and predicts hidden tokens",
      one_of{"mlp", "gpt2", "llama", "encoder", "vit"});
    v("preset", preset, "sizes of a known model; keys given beside it win",
      one_of{"none", "tiny", "nano", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "llama-3.2-1b",
             "llama-3-8b"});
    v("layers", layers, "blocks, >= 1");
    v("heads", heads, "attention heads; divides d_model");
    v("kv_heads", kv_heads, "heads of keys and values; divides heads; default: heads");
    v("d_model", d_model, "channels");
    v("d_ff", d_ff,
      "channels inside the feed-forward layer; default: gpt2 4 d_model; others 8/3 d_model, up to "
      "a "
      "multiple of 256");
    v("vocab", vocab, "rows of the token embedding; default: the tokenizer's");
    v("context", context, "tokens a sample, >= 1");
    v("dropout", dropout, "share of activations dropped, 0 <= p < 1");
    v("tied", tied, "the head shares the token embedding's weight");
    v("rope_theta", rope_theta, "llama, encoder: base of the rotary positions' frequencies, > 0");
    v("rope_scaling", rope_scaling,
      "llama, encoder: frequencies stretched for longer contexts, as Llama 3's");
  }

  void validate() const {
    check_available("arch", arch, {"gpt2", "llama", "encoder"});
    check_size("layers", layers);
    check_size("heads", heads);
    check_size("d_model", d_model);
    if (d_ff) check_size("d_ff", *d_ff);
    check_size("context", context);
    if (vocab) check_size("vocab", *vocab);
    if (arch != "mlp") {
      check_field(d_model % heads == 0, "heads", heads, "does not divide d_model =", d_model);
      check_size("kv_heads", num_kv_heads());
      check_field(heads % num_kv_heads() == 0, "kv_heads", num_kv_heads(),
                  "does not divide heads =", heads);
      check_field(arch != "gpt2" || num_kv_heads() == heads, "kv_heads", num_kv_heads(),
                  "is for llama and encoder; gpt2 has as many as heads =", heads);
    }
    if (arch != "gpt2")
      check_field(
          d_model / heads % 2 == 0, "heads", heads,
          "gives heads of an odd width, which rotary positions cannot turn: d_model =", d_model);
    check_field(rope_theta > 0, "rope_theta", "expected > 0, got", rope_theta);
    check_field(dropout >= 0 && dropout < 1, "dropout", "expected 0 <= p < 1, got", dropout);
  }

  std::int64_t num_kv_heads() const { return kv_heads.value_or(heads); }

  bool operator==(const ModelSection&) const = default;

 private:
  /// Sizes fit 31 bits, so that their products fit 63.
  static void check_size(const char* field, std::int64_t size) {
    check_field(size >= 1 && size <= INT32_MAX, field, "expected 1 to 2147483647, got", size);
  }
};

}  // namespace sherd
