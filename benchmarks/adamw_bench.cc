// One AdamW step over the tensors of GPT-2 blocks: nanoseconds a parameter, GB/s, and the share of
// this machine's triad (a = b + s·c), measured in turns with it in the same run.
//   bazel run //benchmarks:adamw_bench -- --threads 2
// The last lines are CSV. benchmarks/peers/adamw.py measures the same in PyTorch.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "analysis/median.h"
#include "analysis/triad.h"
#include "base/progress.h"
#include "optim/adamw.h"
#include "optim/grad_clip.h"
#include "tensor/dtype.h"
#include "tensor/runtime.h"

namespace sherd {
namespace {

template <class Body>
double seconds(const Body& body) {
  const double begin_s = steady_seconds();
  body();
  return steady_seconds() - begin_s;
}

/// Blocks of `channels` until there are `least` parameters.
std::vector<Slot> block_slots(const RuntimePtr& rt, int64_t channels, int64_t least, DType dtype) {
  std::vector<Slot> slots;
  const auto add = [&](const Shape& shape) {
    Slot slot;
    slot.name = detail::concat("parameter.", slots.size());
    slot.value = Tensor::full(rt, shape, 0.5, dtype);
    slot.grad = Tensor::full(rt, shape, 1e-3, accumulate_dtype(dtype));
    slot.weight_decay = 0.1;
    slots.push_back(std::move(slot));
    return shape.numel();
  };
  for (int64_t count = 0; count < least;) {
    for (const auto& [rows, columns] : {std::pair(3, 1), {1, 1}, {4, 1}, {1, 4}}) {
      count += add({rows * channels, columns * channels});
      count += add({rows * channels});
    }
    for (int i = 0; i < 4; ++i) count += add({channels});
  }
  return slots;
}

/// What one element moves: gradient and moments, and the value or the master and the value.
double bytes_per_parameter(DType dtype, DType moments) {
  if (dtype == DType::f64) return 56;
  return (dtype == DType::f32 ? 28 : 30) - (moments == DType::bf16 ? 8 : 0);
}

void measure(DType dtype, DType moments, int threads, int64_t channels, int64_t least, int steps) {
  const auto rt = Runtime::create({.threads = threads});
  std::vector<Slot> slots = block_slots(rt, channels, least, dtype);
  int64_t count = 0;
  for (const Slot& slot : slots) count += slot.value.numel();
  const Triad triad(rt);
  AdamW adamw({.beta1 = 0.9, .beta2 = 0.95, .moments = moments});
  std::vector<double> step_s, norm_s, triad_s;
  for (int i = 0; i < steps + 3; ++i) {
    const double step = seconds([&] { adamw.step(slots, 3e-4, 0.9); });
    const double norm = seconds([&] { grad_norm(slots, 1, NormKind::two); });
    const double stream = seconds([&] { triad.run(); });
    if (i < 3) continue;
    step_s.push_back(step);
    norm_s.push_back(norm);
    triad_s.push_back(stream);
  }
  const auto n = static_cast<double>(count);
  const double ns = median(step_s) / n * 1e9;
  const double gbs = bytes_per_parameter(dtype, moments) * n / median(step_s) / 1e9;
  const double triad_gbs = Triad::kBytes / median(triad_s) / 1e9;
  const double norm_gbs = 4.0 * n / median(norm_s) / 1e9;
  const std::string name(name_of(dtype));
  std::printf("adamw %s, moments %s, %d threads, %ld parameters in %zu tensors, median of %d\n",
              name.c_str(), std::string(name_of(moments)).c_str(), threads, count, slots.size(),
              steps);
  std::printf("  step %.3f ns a parameter (least %.3f), %.1f GB/s, %.0f %% of triad %.1f GB/s\n",
              ns, *std::min_element(step_s.begin(), step_s.end()) / n * 1e9, gbs,
              gbs / triad_gbs * 100, triad_gbs);
  std::printf("  norm %.3f ns a parameter, %.1f GB/s\n", median(norm_s) / n * 1e9, norm_gbs);
  std::printf("dtype,threads,params,ns_per_param,gb_per_s,triad_gb_per_s,share,norm_gb_per_s\n");
  std::printf("%s,%d,%ld,%.4f,%.2f,%.2f,%.3f,%.2f\n", name.c_str(), threads, count, ns, gbs,
              triad_gbs, gbs / triad_gbs, norm_gbs);
}

}  // namespace
}  // namespace sherd

int main(int argc, char** argv) {
  CLI::App app("AdamW alone: time a parameter and share of triad");
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int64_t channels = 384;
  double params = 30e6;
  int steps = 20;
  std::string dtype = "f32", moments = "f32";
  app.add_option("--threads", threads);
  app.add_option("--channels", channels);
  app.add_option("--params", params, "at least");
  app.add_option("--steps", steps);
  app.add_option("--dtype", dtype, "f32, bf16, f16 or f64")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "f64"}));
  app.add_option("--moments", moments, "f32 or bf16")->check(CLI::IsMember({"f32", "bf16"}));
  CLI11_PARSE(app, argc, argv);
  sherd::measure(sherd::parse_dtype(dtype), sherd::parse_dtype(moments), threads, channels,
                 static_cast<int64_t>(params), steps);
}
