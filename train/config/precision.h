// [precision]: the types that values are computed, kept and sent in.
#pragma once

#include <cmath>
#include <string>
#include <variant>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct PrecisionSection {
  std::string compute = "f32";
  std::string master = "f32";
  std::string reduce = "f32";
  std::string moments = "f32";
  std::variant<std::string, double> loss_scale = std::string("auto");

  void fields(auto& v) {
    v("compute", compute, "of activations and the weights that meet them",
      one_of{"f32", "bf16", "f16"});
    v("master", master, "of the weights that the optimizer updates", one_of{"f32", "f64"});
    v("reduce", reduce, "of gradients on their way between ranks", one_of{"f32", "bf16", "f16"});
    v("moments", moments, "of the optimizer's state (bf16: stochastic rounding)",
      one_of{"f32", "bf16"});
    v("loss_scale", loss_scale,
      "what the mean loss is multiplied by before backward, and gradients divided by after; auto: "
      "none for now; or a fixed power of two",
      one_of{"auto", "none", "dynamic"});
  }

  void validate() const {
    check_available("compute", compute, {"f32", "bf16", "f16"});
    check_available("master", master, {"f32"});
    check_available("reduce", reduce, {"f32", "bf16", "f16"});
    check_available("moments", moments, {"f32"});
    if (const auto* word = std::get_if<std::string>(&loss_scale))
      check_available("loss_scale", *word, {"auto", "none", "a power of two"});
    int exponent = 0;
    const double scale = fixed_loss_scale();
    check_field(
        scale > 0 && std::frexp(scale, &exponent) == 0.5 && std::abs(exponent) <= 33, "loss_scale",
        "expected a power of two of 2^-32 to 2^32, which is undone exactly, or none; got", scale);
  }

  /// 1 where there is none.
  double fixed_loss_scale() const {
    const auto* number = std::get_if<double>(&loss_scale);
    return number != nullptr ? *number : 1;
  }

  bool operator==(const PrecisionSection&) const = default;
};

}  // namespace sherd
