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
  double loss_scale_start = 65536;
  std::int64_t loss_scale_window = 2000;
  double loss_scale_floor = 1;

  void fields(auto& v) {
    v("compute", compute, "of activations and the weights that meet them",
      one_of{"f32", "bf16", "f16"});
    v("master", master, "of the weights that the optimizer updates", one_of{"f32", "f64"});
    v("reduce", reduce, "of gradients on their way between ranks", one_of{"f32", "bf16", "f16"});
    v("moments", moments, "of adamw's moments (bf16: rounded at random, 4 bytes less a parameter)",
      one_of{"f32", "bf16"});
    v("loss_scale", loss_scale,
      "what the mean loss is multiplied by before backward, and gradients divided by after: a "
      "power of two, none, or dynamic: halved when gradients overflow, and the step is skipped; "
      "auto: dynamic where compute is f16",
      one_of{"auto", "none", "dynamic"});
    v("loss_scale_start", loss_scale_start, "dynamic: where it begins, a power of two");
    v("loss_scale_window", loss_scale_window,
      "dynamic: steps without overflow after which it doubles, >= 1");
    v("loss_scale_floor", loss_scale_floor,
      "dynamic: where it stops to halve, a power of two; overflow there ends the run");
  }

  void validate() const {
    check_available("compute", compute, {"f32", "bf16", "f16"});
    check_available("master", master, {"f32"});
    check_available("reduce", reduce, {"f32", "bf16", "f16"});
    check_available("moments", moments, {"f32", "bf16"});
    check_scale("loss_scale", first_loss_scale());
    check_scale("loss_scale_start", loss_scale_start);
    check_scale("loss_scale_floor", loss_scale_floor);
    check_field(loss_scale_floor <= loss_scale_start, "loss_scale_floor",
                "expected at most loss_scale_start =", loss_scale_start, "got", loss_scale_floor);
    check_field(loss_scale_window >= 1, "loss_scale_window", "expected >= 1, got",
                loss_scale_window);
  }

  bool dynamic_loss_scale() const {
    const auto* word = std::get_if<std::string>(&loss_scale);
    return word != nullptr && (*word == "dynamic" || (*word == "auto" && compute == "f16"));
  }
  /// 1 where there is none; where a dynamic one begins.
  double first_loss_scale() const {
    if (dynamic_loss_scale()) return loss_scale_start;
    const auto* number = std::get_if<double>(&loss_scale);
    return number != nullptr ? *number : 1;
  }

  bool operator==(const PrecisionSection&) const = default;

 private:
  static void check_scale(const char* field, double scale) {
    int exponent = 0;
    check_field(scale > 0 && std::frexp(scale, &exponent) == 0.5 && std::abs(exponent) <= 33, field,
                "expected a power of two of 2^-32 to 2^32, which is undone exactly, or none; got",
                scale);
  }
};

}  // namespace sherd
