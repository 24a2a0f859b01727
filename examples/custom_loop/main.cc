// A training loop of one's own, without the Trainer: a small GPT on the bytes of any text.
//   bazel run //examples/custom_loop -- [TEXT [STEPS]]     default: the King James Bible, 500 steps
#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "nn/init.h"
#include "nn/models/gpt2.h"
#include "optim/adamw.h"
#include "optim/grad_clip.h"
#include "optim/lr_schedule.h"
#include "train/bundled_text.h"
#include "train/cache_folder.h"
#include "train/sampler.h"

using namespace sherd;

int main(int argc, char** argv) try {
  const MappedFile file(
      argc > 1 ? argv[1] : prepare_bundled_text(bundled_text("kjv"), default_cache_folder()));
  const int64_t steps = argc > 2 ? std::stoll(argv[2]) : 500;
  const auto runtime = Runtime::create({.threads = 2});
  Tape tape(runtime);
  Gpt2 model(tape, gpt2_preset("nano"));
  init_parameters(model, /*seed=*/1);

  const auto weights = parameters(model);
  std::vector<Slot> slots;
  for (const auto& w : weights)
    slots.push_back({.name = w.name,
                     .value = w.parameter.value(),
                     .weight_decay = w.parameter.shape().size() > 1 ? 0.1 : 0});
  AdamW optimizer({.beta2 = 0.99});
  const LrSchedule lr{LrShape::cosine, 1e-3, 1e-4, /*warmup=*/50, steps};

  const int64_t B = 12, T = model.config.context;
  const Sampler sampler(static_cast<int64_t>(file.text().size()), T, SampleOrder::random, 1);
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<int32_t> tokens, targets;
    for (int64_t b = 0; b < B; ++b)
      for (int64_t t = 0, at = sampler.begin_of(step * B + b); t < T; ++t, ++at) {
        tokens.push_back(static_cast<unsigned char>(file.text()[at]));
        targets.push_back(static_cast<unsigned char>(file.text()[at + 1]));
      }
    const LossResult result = model.loss(Tensor::from<int32_t>(runtime, {B, T}, tokens),
                                         Tensor::from<int32_t>(runtime, {B, T}, targets),
                                         {.training = true, .key = RandomKey{1, 0}.derive(step)});
    const double mean = 1.0 / static_cast<double>(result.tokens);
    if (step % 50 == 0 || step + 1 == steps)
      std::printf("step %4ld  loss %.4f\n", step, result.loss.value().item() * mean);
    tape.backward(result.loss);
    for (size_t i = 0; i < slots.size(); ++i) slots[i].grad = weights[i].parameter.grad();
    const double norm = grad_norm(slots, mean, NormKind::two).norm;
    optimizer.step(slots, lr.at(step), mean * clip_factor(norm, 1.0));
    for (const auto& w : weights) w.parameter.set_grad({});
  }
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
