// What the steps share: a small MLP, points on three spirals to tell apart, the lines they print.
// Each step trains the same model on the same 300 points a step, so each prints the same losses.
#pragma once

#include <cmath>
#include <cstdio>
#include <vector>

#include "dist/tree_fold.h"
#include "nn/models/mlp.h"

namespace steps {

using namespace sherd;

inline constexpr int kRanks = 4, kSteps = 200;
inline constexpr int kArms = 3, kPoints = 300;
inline constexpr uint64_t kSeed = 1;
inline constexpr double kLr = 0.005;

inline MlpConfig mlp_config() { return {.in = 2, .hidden = {64, 64}, .out = kArms}; }

struct Batch {
  Tensor points;   ///< [n, 2]
  Tensor classes;  ///< [n] i32
};

/// Every `ranks`-th of the points, from `rank` on: the ranks together have each point once.
inline Batch batch_of(const RuntimePtr& runtime, int rank, int ranks) {
  std::vector<float> points;
  std::vector<int32_t> classes;
  for (int i = rank; i < kPoints; i += ranks) {
    const int arm = i % kArms;
    const float r = static_cast<float>(i + 1) / kPoints;
    const float angle = 2.0944f * static_cast<float>(arm) + 7.854f * r;
    points.push_back(r * std::cos(angle));
    points.push_back(r * std::sin(angle));
    classes.push_back(arm);
  }
  const auto n = static_cast<int64_t>(classes.size());
  return {Tensor::from<float>(runtime, {n, 2}, points),
          Tensor::from<int32_t>(runtime, {n}, classes)};
}

/// Every 20 steps. Three digits: one sum over 300 points and four over 75 differ in the seventh.
inline void print_loss(int step, double sum) {
  if (step % 20 == 0 || step + 1 == kSteps)
    std::printf("step %3d  loss %.3f\n", step, sum / kPoints);
}

/// What rank 0 holds before its last update, to stderr: here the steps do differ.
inline void print_memory(int step, Runtime& runtime) {
  if (step + 1 != kSteps) return;
  const CategoryBytes bytes = runtime.allocator().live_by_category();
  std::fprintf(stderr, "bytes before the update:");
  for (const Category c :
       {Category::params, Category::gathered, Category::grads, Category::optimizer})
    std::fprintf(stderr, "  %s %lld", name_of(c),
                 static_cast<long long>(bytes[static_cast<size_t>(c)]));
  std::fprintf(stderr, "\n");
}

}  // namespace steps
