#include "analysis/step_bench.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <type_traits>

#include "analysis/gemm_bench.h"
#include "nn/init.h"
#include "optim/adamw.h"

namespace sherd {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// tokens and targets, the same shifted by one, of a [batch, context + 1] block.
struct StepData {
  Tensor tokens, targets;
};

StepData data_of(const RuntimePtr& runtime, const Workload& w, uint64_t step) {
  const int64_t T = w.model.context;
  const Tensor both = Tensor::from<int32_t>(runtime, {w.batch, T + 1}, workload_tokens(w, step));
  return {both.slice(1, 0, T).contiguous(), both.slice(1, 1, T + 1).contiguous()};
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// What travels from the child: plain numbers.
struct Wire {
  double median_ms, min_ms, max_ms, first_step_ms, loss, gemm_ms, gemm_gflop;
  int64_t peak_bytes, late_allocations, peak_rss_bytes, parameters;
};
static_assert(std::is_trivially_copyable_v<Wire>);

}  // namespace

StepTimes bench_step(const Workload& w, DType dtype, const StepBenchOptions& options) {
  const RuntimePtr runtime = Runtime::create({.threads = options.threads});
  StepTimes result;
  result.workload = w.name;
  result.dtype = dtype;
  {
    Tape tape(runtime);
    Gpt2Config config = w.model;
    config.dtype = dtype;
    Gpt2 model = [&] {
      const CategoryScope scope(*runtime, Category::params);
      return Gpt2(tape, config);
    }();
    init_parameters(model, 1);
    result.parameters = count_parameters(model).total;
    const auto named = parameters(model);
    std::vector<Slot> slots;
    for (const auto& p : named)
      slots.push_back({.name = p.name, .value = p.parameter.value(), .weight_decay = 0.1});
    AdamW optimizer({.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8});

    const CategoryScope scope(*runtime, Category::activations);
    std::vector<double> times;
    int64_t allocations = 0;
    for (int step = 0; step < options.warmup + options.steps; ++step) {
      const StepData data = data_of(runtime, w, static_cast<uint64_t>(step));
      const auto start = Clock::now();
      const LossResult loss = model.loss(data.tokens, data.targets, {.training = true});
      tape.backward(loss.loss);
      for (size_t i = 0; i < slots.size(); ++i) slots[i].grad = named[i].parameter.grad();
      const auto tokens = static_cast<double>(loss.tokens);
      optimizer.step(slots, 3e-4, 1 / tokens);
      for (size_t i = 0; i < slots.size(); ++i) {
        slots[i].grad = {};
        named[i].parameter.set_grad({});
      }
      result.loss = loss.loss.value().item() / tokens;
      const double ms = milliseconds_since(start);
      if (step == 0) result.first_step_ms = ms;
      if (step == 1) allocations = runtime->allocator().system_allocations();
      if (step >= options.warmup) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    result.median_ms = times[times.size() / 2];
    result.min_ms = times.front();
    result.max_ms = times.back();
    result.peak_bytes = runtime->allocator().peak().bytes;
    result.late_allocations = runtime->allocator().system_allocations() - allocations;
    result.peak_rss_bytes = peak_rss_bytes();
  }
  const auto shapes = gemms_of(w, dtype);
  result.gemm_ms = 1e3 * time_gemms(runtime, shapes, dtype, 5);
  for (const auto& s : shapes) result.gemm_gflop += flops(s) * static_cast<double>(s.count) / 1e9;
  return result;
}

StepTimes bench_step_in_child(const Workload& w, DType dtype, const StepBenchOptions& options) {
  int ends[2];
  if (pipe(ends) != 0) fail_as(ErrorKind::io, "cannot make a pipe:", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) fail_as(ErrorKind::io, "cannot start a process:", std::strerror(errno));
  if (child == 0) {
    int status = 1;
    try {
      const StepTimes t = bench_step(w, dtype, options);
      const Wire wire{t.median_ms, t.min_ms,     t.max_ms,     t.first_step_ms,    t.loss,
                      t.gemm_ms,   t.gemm_gflop, t.peak_bytes, t.late_allocations, t.peak_rss_bytes,
                      t.parameters};
      status = write(ends[1], &wire, sizeof wire) == static_cast<ssize_t>(sizeof wire) ? 0 : 1;
    } catch (const std::exception& e) {
      std::cerr << "sherd: " << e.what() << std::endl;
    }
    _exit(status);  // the parent's buffers are not ours to flush
  }
  close(ends[1]);
  Wire wire{};
  const ssize_t got = read(ends[0], &wire, sizeof wire);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (got != static_cast<ssize_t>(sizeof wire) || status != 0)
    fail_as(ErrorKind::io, "the measured process failed: workload", w.name, dtype, "status",
            status);
  return {.workload = w.name,
          .dtype = dtype,
          .median_ms = wire.median_ms,
          .min_ms = wire.min_ms,
          .max_ms = wire.max_ms,
          .first_step_ms = wire.first_step_ms,
          .loss = wire.loss,
          .gemm_ms = wire.gemm_ms,
          .gemm_gflop = wire.gemm_gflop,
          .peak_bytes = wire.peak_bytes,
          .late_allocations = wire.late_allocations,
          .peak_rss_bytes = wire.peak_rss_bytes,
          .parameters = wire.parameters};
}

}  // namespace sherd
