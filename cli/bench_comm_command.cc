// sherd bench comm: how fast ranks move bytes between them, beside memcpy by all of them at once.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "analysis/comm_bench.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/mpi_start.h"
#include "dist/comm/mpi_ranks.h"
#include "dist/comm/thread_ranks.h"

namespace sherd {
namespace {

struct CommOptions {
  std::string engine = "threads";
  int ranks = 2;
  std::vector<int64_t> kib = {4, 16, 64, 256, 1024, 4096, 16384, 65536};
  std::string json;
};

void print(const CommTime& t, const std::string& what, double memcpy_gb_per_s) {
  std::printf("%-28s %10s  %9.1f us (least %9.1f)  %7.2f GB/s", t.op.c_str(), what.c_str(),
              t.median_us, t.min_us, t.gb_per_s());
  if (memcpy_gb_per_s > 0) std::printf("  %.2f of memcpy", t.gb_per_s() / memcpy_gb_per_s);
  std::printf("\n");
  std::fflush(stdout);
}

nlohmann::ordered_json json_of(const CommTime& t, double memcpy_gb_per_s) {
  nlohmann::ordered_json j = {{"op", t.op},
                              {"us", {{"median", t.median_us}, {"min", t.min_us}}},
                              {"received_bytes", t.received_bytes},
                              {"gb_per_s", t.gb_per_s()}};
  if (memcpy_gb_per_s > 0) j["of_memcpy"] = t.gb_per_s() / memcpy_gb_per_s;
  return j;
}

void measure(Rank& rank, const CommOptions& options) {
  const bool speaks = rank.rank == 0;
  nlohmann::ordered_json document = {{"engine", options.engine}, {"ranks", rank.size}};
  document["collectives"] = nlohmann::ordered_json::array();
  if (speaks)
    std::printf("%d ranks as %s, f32; GB/s: what a rank receives; memcpy: all ranks at once\n",
                rank.size, options.engine.c_str());
  for (const int64_t kib : options.kib) {
    const int64_t unit = 4 * rank.size;
    const int64_t bytes = (kib * 1024 + unit - 1) / unit * unit;
    const CommBuffers buffers(rank, bytes);
    double memcpy_gb_per_s = 0;
    for (const CommTime& t : time_in_turns(rank, buffers.ops(), comm_rounds(bytes))) {
      if (!speaks) continue;
      print(t, std::to_string(kib) + " KiB", memcpy_gb_per_s);
      document["collectives"].push_back(json_of(t, memcpy_gb_per_s));
      document["collectives"].back()["bytes"] = bytes;
      if (t.op == "memcpy") memcpy_gb_per_s = t.gb_per_s();
    }
  }
  constexpr int kTiny = 1000, kElements = 100;
  document["tiny_parameters"] = nlohmann::ordered_json::array();
  for (const CommTime& t : time_in_turns(rank, tiny_ops(rank, kTiny, kElements), 20)) {
    if (!speaks) continue;
    print(t, "1000 x 400", 0);
    document["tiny_parameters"].push_back(json_of(t, 0));
  }
  if (speaks && !options.json.empty()) write_file(options.json, document.dump(2) + "\n");
}

void bench_comm(const CommOptions& options) {
  const auto on_rank = [&](Rank& rank) { measure(rank, options); };
  if (options.engine == "threads") return run_thread_ranks({.ranks = options.ranks}, on_rank);
  check(options.engine == "mpi", "expected threads or mpi as the engine, got", options.engine);
  start_mpi_ranks(options.ranks, "--engine threads");
  run_mpi_ranks({}, on_rank);
}

}  // namespace

void add_bench_comm(CLI::App& bench) {
  CLI::App* comm = bench.add_subcommand("comm", "collectives of 4 KiB to 64 MiB between ranks");
  const auto options = std::make_shared<CommOptions>();
  comm->add_option("--engine", options->engine, "threads, mpi")->capture_default_str();
  comm->add_option("--ranks", options->ranks)->capture_default_str()->check(CLI::PositiveNumber);
  comm->add_option("--kib", options->kib, "sizes of the whole")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  comm->add_option("--json", options->json, "also write the figures to this file");
  comm->callback([options] { bench_comm(*options); });
}

}  // namespace sherd
