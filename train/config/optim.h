// [optim]: the optimizer and its learning rate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "train/config/available.h"

namespace sherd {

struct OptimSection {
  std::string name = "adamw";
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.95};
  double momentum = 0;
  double eps = 1e-8;
  double weight_decay = 0.1;
  std::string schedule = "cosine";
  std::int64_t warmup = 0;
  double min_lr = 0;
  std::optional<std::int64_t> decay;
  bool nesterov = false;

  void fields(auto& v) {
    v("name", name, "the optimizer", one_of{"adamw", "sgd", "lion"});
    v("lr", lr, "peak learning rate, > 0");
    v("betas", betas, "of adamw's two moments, and of lion's direction and momentum, 0 <= b < 1");
    v("momentum", momentum, "of sgd, 0 <= m < 1");
    v("nesterov", nesterov, "sgd's momentum looks ahead");
    v("eps", eps, "added to the root of adamw's second moment, > 0");
    v("weight_decay", weight_decay, "of matrices; biases and norms have none");
    v("schedule", schedule, "the learning rate after warm-up",
      one_of{"constant", "linear", "cosine", "wsd"});
    v("warmup", warmup, "steps of linear warm-up, <= run.steps");
    v("min_lr", min_lr, "where all but constant end, <= lr");
    v("decay", decay, "wsd: last steps, which fall to min_lr; default: a tenth of run.steps");
  }

  void validate() const {
    check_available("name", name, {"adamw", "sgd", "lion"});
    check_field(lr > 0 && lr < 1e6, "lr", "expected > 0, got", lr);
    check_field(betas.size() == 2, "betas", "expected two numbers, got", betas.size());
    for (const double b : betas)
      check_field(b >= 0 && b < 1, "betas", "expected 0 <= b < 1, got", b);
    check_field(momentum >= 0 && momentum < 1, "momentum", "expected 0 <= m < 1, got", momentum);
    check_field(!nesterov || (name == "sgd" && momentum > 0), "nesterov",
                "is for sgd with optim.momentum > 0; optim.name is", name);
    check_field(!decay || (schedule == "wsd" && *decay >= 0), "decay",
                "is a number of steps of optim.schedule = \"wsd\", not of", schedule);
    check_field(eps > 0 && eps < 1, "eps", "expected 0 < eps < 1, got", eps);
    check_field(weight_decay >= 0 && weight_decay < 1e6, "weight_decay", "expected >= 0, got",
                weight_decay);
    check_field(warmup >= 0, "warmup", "expected >= 0, got", warmup);
    check_field(min_lr >= 0 && min_lr <= lr, "min_lr", "expected 0 <= min_lr <= lr, got", min_lr,
                "with lr =", lr);
  }

  bool operator==(const OptimSection&) const = default;
};

}  // namespace sherd
