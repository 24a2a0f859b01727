// sherd bench: the ceilings of this machine and how close a training step comes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "analysis/disk_bench.h"
#include "analysis/gemm_bench.h"
#include "analysis/op_bench.h"
#include "analysis/step_bench.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/toml.h"
#include "cli/commands.h"

namespace sherd {
namespace {

struct BenchOptions {
  std::vector<std::string> workloads = {"W1", "W2", "W3"};
  std::vector<std::string> dtypes = {"f32", "bf16"};
  int threads = 0;
  int steps = 10;
  std::string json;
};

DType bench_dtype(const std::string& name) {
  const DType dtype = parse_dtype(name);
  check(dtype == DType::f32 || dtype == DType::bf16, "bench takes f32 and bf16, not", name);
  return dtype;
}

nlohmann::ordered_json measure_gemm(const BenchOptions& options) {
  const RuntimePtr runtime = Runtime::create({.threads = options.threads});
  nlohmann::ordered_json gemm;
  for (const std::string& dtype : options.dtypes) {
    const double rate = gemm_gflops(runtime, bench_dtype(dtype));
    gemm[dtype + "_gflops"] = rate;
    std::printf("GEMM %-5s %7.1f GFLOP/s (geometric mean over W1's shapes, %d threads)\n",
                dtype.c_str(), rate, options.threads);
  }
  gemm["threads"] = options.threads;
  return gemm;
}

/// Rows and columns of what the ops run over: 32 MiB in f32, more than a core's caches hold.
constexpr std::int64_t kOpRows = 8192;
constexpr std::int64_t kOpColumns = 1024;

nlohmann::ordered_json measure_ops(const BenchOptions& options) {
  const RuntimePtr runtime = Runtime::create({.threads = options.threads});
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const std::string& dtype : options.dtypes) {
    const auto times = time_ops(runtime, bench_dtype(dtype), kOpRows, kOpColumns, 0.5);
    const double triad = times.front().gb_per_s();
    for (const OpTime& t : times) {
      const double ns = t.ms * 1e6 / static_cast<double>(kOpRows * kOpColumns);
      std::printf("%-14s %-5s %8.3f ms  %6.1f GB/s  %.2f of triad", t.op.c_str(), dtype.c_str(),
                  t.ms, t.gb_per_s(), t.gb_per_s() / triad);
      if (t.op != "triad") std::printf("  %6.3f ns an element", ns);
      std::printf("\n");
      std::fflush(stdout);
      ops.push_back({{"op", t.op},
                     {"dtype", dtype},
                     {"ms", t.ms},
                     {"gb_per_s", t.gb_per_s()},
                     {"of_triad", t.gb_per_s() / triad}});
    }
  }
  return ops;
}

nlohmann::ordered_json measure_step(const BenchOptions& options, const std::string& name,
                                    const std::string& dtype, double gemm_rate) {
  const Workload w = workload(name);
  const StepTimes t = bench_step_in_child(w, bench_dtype(dtype),
                                          {.threads = options.threads, .steps = options.steps});
  const double rate = w.flops() / t.median_ms / 1e6;
  const double of_gemm = rate / gemm_rate;
  const double of_own = rate / (t.gemm_gflop / t.gemm_ms * 1e3);
  const double tokens_per_s = static_cast<double>(w.tokens()) / t.median_ms * 1e3;
  std::printf(
      "%-3s %-5s %8.1f ms (%.1f to %.1f, first %.1f) %8.0f tokens/s %6.1f GFLOP/s  %.2f of GEMM  "
      "%.2f of its own "
      "GEMMs (%.1f ms)  peak %lld MiB, process %lld MiB, %lld late allocations, loss %.4f\n",
      name.c_str(), dtype.c_str(), t.median_ms, t.min_ms, t.max_ms, t.first_step_ms, tokens_per_s,
      rate, of_gemm, of_own, t.gemm_ms, static_cast<long long>(t.peak_bytes >> 20),
      static_cast<long long>(t.peak_rss_bytes >> 20), static_cast<long long>(t.late_allocations),
      t.loss);
  std::fflush(stdout);
  return {{"workload", name},
          {"dtype", dtype},
          {"ms", {{"median", t.median_ms}, {"min", t.min_ms}, {"max", t.max_ms}}},
          {"first_step_ms", t.first_step_ms},
          {"tokens_per_s", tokens_per_s},
          {"model_gflops", rate},
          {"fraction_of_gemm", of_gemm},
          {"fraction_of_own_gemms", of_own},
          {"peak_bytes", t.peak_bytes},
          {"peak_rss_bytes", t.peak_rss_bytes},
          {"late_allocations", t.late_allocations},
          {"loss", t.loss}};
}

nlohmann::ordered_json measure_disk(const std::string& folder, const std::string& size) {
  const DiskTimes t = time_disk(folder, parse_bytes(size).count);
  const double mb = static_cast<double>(t.bytes) / 1e6;
  std::printf(
      "write %8.0f MB/s, until it is on the disk\nread  %8.0f MB/s\nsync  %8.2f ms for 4 KiB in a "
      "new file\n",
      mb / t.write_s, mb / t.read_s, t.sync_ms);
  return {{"bytes", t.bytes},
          {"write_mb_per_s", mb / t.write_s},
          {"read_mb_per_s", mb / t.read_s},
          {"sync_ms", t.sync_ms}};
}

void write_json(const std::string& path, const nlohmann::ordered_json& document) {
  if (!path.empty()) write_file(path, document.dump(2) + "\n");
}

void add_options(CLI::App& command, BenchOptions& options) {
  command.add_option("--dtypes", options.dtypes, "f32, bf16")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--threads", options.threads, "default: the usable cores");
  command.add_option("--json", options.json, "also write the figures to this file");
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* bench =
      app.add_subcommand("bench", "the ceilings of this machine and how close Sherd comes");
  bench->require_subcommand(1);
  const auto options = std::make_shared<BenchOptions>();
  const auto threads = [options] {
    if (options->threads <= 0) options->threads = usable_cores();
  };

  CLI::App* gemm = bench->add_subcommand("gemm", "matrix products of a transformer's shapes");
  add_options(*gemm, *options);
  gemm->callback([options, threads] {
    threads();
    write_json(options->json, {{"gemm", measure_gemm(*options)}});
  });

  CLI::App* op = bench->add_subcommand(
      "op", "ops that move memory (8,192 x 1,024 elements), beside this machine's triad");
  add_options(*op, *options);
  op->callback([options, threads] {
    threads();
    write_json(options->json, {{"threads", options->threads}, {"ops", measure_ops(*options)}});
  });

  add_bench_comm(*bench);

  CLI::App* disk =
      bench->add_subcommand("disk", "the disk under a folder, by a checkpoint's calls");
  const auto folder = std::make_shared<std::string>(".");
  const auto size = std::make_shared<std::string>("256MiB");
  disk->add_option("--path", *folder, "where checkpoints would be written")->capture_default_str();
  disk->add_option("--bytes", *size, "to write and read, such as 1GiB")->capture_default_str();
  disk->add_option("--json", options->json, "also write the figures to this file");
  disk->callback([options, folder, size] {
    write_json(options->json, {{"disk", measure_disk(*folder, *size)}});
  });

  CLI::App* step =
      bench->add_subcommand("step", "whole training steps of the workloads W1, W2, W3");
  add_options(*step, *options);
  step->add_option("--workloads", options->workloads, "W1, W2, W3")
      ->delimiter(',')
      ->capture_default_str();
  step->add_option("--steps", options->steps, "timed steps, after 3 others")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  step->callback([options, threads] {
    threads();
    nlohmann::ordered_json document;
    const auto gemm_rates = measure_gemm(*options);
    document["gemm"] = gemm_rates;
    document["steps"] = nlohmann::ordered_json::array();
    for (const std::string& name : options->workloads)
      for (const std::string& dtype : options->dtypes)
        document["steps"].push_back(
            measure_step(*options, name, dtype, gemm_rates[dtype + "_gflops"]));
    write_json(options->json, document);
  });
}

}  // namespace sherd
