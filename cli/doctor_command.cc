// sherd doctor: what this machine has, and what Sherd will use of it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "base/machine.h"
#include "cli/commands.h"
#include "cli/notice.h"
#include "dist/comm/mpi_ranks.h"
#include "tensor/runtime.h"
#include "train/gemm_rate.h"

namespace sherd {
namespace {

std::string gibibytes(std::int64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

void print_rate(const RuntimePtr& runtime, DType dtype) {
  char text[80];
  std::snprintf(text, sizeof text, "%.0f GFLOP/s", measure_gemm_rate(runtime, dtype) / 1e9);
  std::cout << "GEMM " << name_of(dtype) << "         " << text << '\n';
}

/// " (run.isa: base, avx2)"
std::string isa_choices() {
  std::string text = " (run.isa: ";
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i)
    text += (i > 0 ? ", " : "") + std::string(name_of(static_cast<Isa>(i)));
  return text + ')';
}

void doctor(bool bench) {
  const int cores = usable_cores();
  std::cout << "system           " << kernel_name() << "\n"
            << "processor        " << cpu_name() << "\n"
            << "instruction set  " << name_of(best_isa()) << isa_choices() << "\n"
            << "usable cores     " << cores << " (run.threads_per_rank)\n"
            << "usable memory    " << gibibytes(usable_memory_bytes()) << " (run.memory_limit)\n"
            << "CUDA             not in this version"
            << (has_nvidia_gpu() ? "; there is an NVIDIA GPU, which is not used" : "") << "\n"
            << "MPI              "
            << (has_mpi_ranks() ? "Open MPI" : "none: install libopenmpi-dev and openmpi-bin")
            << " (dist.engine; ranks as threads need none)\n"
            << "io_uring         " << io_uring_state() << "; this version does not use it\n"
            << "licences         doctor --licences\n";
  if (best_isa() < Isa::avx512bf16)
    std::cout << "bf16             this processor has no instructions for it: rounded, then "
                 "computed in f32\n";
  if (!bench) return;
  const RuntimePtr runtime = Runtime::create({.threads = cores});
  print_rate(runtime, DType::f32);
  print_rate(runtime, DType::bf16);
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "what this machine has and what will be used");
  const auto bench = std::make_shared<bool>(false);
  const auto licences = std::make_shared<bool>(false);
  command->add_flag("--bench", *bench, "measure, too");
  command->add_flag("--licences", *licences, "only what is linked, and under which licences");
  command->callback([bench, licences] {
    if (*licences)
      std::cout << kNotice;
    else
      doctor(*bench);
  });
}

}  // namespace sherd
