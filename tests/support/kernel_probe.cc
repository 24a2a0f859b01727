// `TEST --reporter kernels` runs the tests and prints, instead of their results, which kernels they
// reached:
//     level 3                                     the best instruction set of this machine
//     reached sherd::kernels::Softmax<float> 3    each kernel and level that ran
// Every kernel of the program starts with a breakpoint, which the first call takes away, so nothing
// in the library knows of this and each kernel is seen however it is called.
#include <cxxabi.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/isa.h"
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // for reporters
#include "third_party/catch2/test.h"

namespace sherd::test {
namespace {

struct Kernel {
  uint8_t* entry = nullptr;
  uint8_t first_byte = 0;
  std::string name;  // "sherd::kernels::Softmax<float> 3"
  std::atomic<bool> reached{false};
};

/// Sorted by entry, which the linker may have made one for two; the first of them is then used for
/// both. A signal handler can be given nothing, so this is where it looks.
std::vector<std::unique_ptr<Kernel>>& kernels() {
  static std::vector<std::unique_ptr<Kernel>> all;
  return all;
}

Kernel* kernel_at(const uint8_t* entry) {
  const auto found = std::lower_bound(
      kernels().begin(), kernels().end(), entry,
      [](const std::unique_ptr<Kernel>& k, const uint8_t* at) { return k->entry < at; });
  return found != kernels().end() && (*found)->entry == entry ? found->get() : nullptr;
}

/// Two threads may arrive at once; the second finds the byte restored already, and goes on too.
void on_trap(int, siginfo_t*, void* context) {
  greg_t& next = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  Kernel* kernel = kernel_at(reinterpret_cast<const uint8_t*>(next) - 1);
  if (kernel == nullptr) std::abort();
  *static_cast<volatile uint8_t*>(kernel->entry) = kernel->first_byte;
  kernel->reached = true;
  --next;
}

/// "sherd::kernels::Softmax<float> 3" for the symbol of Softmax<float>::run<avx512bf16>; empty for
/// any other symbol.
std::string kernel_name(const char* symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  const std::string name = status == 0 ? text : "";
  std::free(text);
  const std::string run = "::run<(sherd::Isa)";
  const size_t at = name.rfind(run);
  const std::string after = at == std::string::npos ? "" : name.substr(at + run.size() + 1);
  if (after != ">(long, long) const") return {};
  // What comes before is "void sherd::kernels::Softmax<float>".
  return name.substr(name.find(' ') + 1, at - name.find(' ') - 1) + ' ' + name[at + run.size()];
}

/// Reads the program's symbol table, which is not in memory.
void find_kernels() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<uintptr_t*>(to) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &base);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* names = bytes.data() + sections[sections[s].sh_link].sh_offset;
    const auto* symbol = reinterpret_cast<const Elf64_Sym*>(bytes.data() + sections[s].sh_offset);
    for (const auto* end = symbol + sections[s].sh_size / sizeof *symbol; symbol < end; ++symbol) {
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) continue;
      std::string name = kernel_name(names + symbol->st_name);
      if (name.empty()) continue;
      kernels().push_back(std::make_unique<Kernel>());
      kernels().back()->entry = reinterpret_cast<uint8_t*>(base + symbol->st_value);
      kernels().back()->name = std::move(name);
    }
  }
  std::sort(kernels().begin(), kernels().end(),
            [](const auto& a, const auto& b) { return a->entry < b->entry; });
}

void set_breakpoints() {
  constexpr uint8_t kBreakpoint = 0xcc;
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const auto& kernel : kernels()) {
    auto* start = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(kernel->entry) & ~(page - 1));
    check(mprotect(start, page, PROT_READ | PROT_WRITE | PROT_EXEC) == 0,
          "cannot make a kernel's page writable:", kernel->name);
    if (*kernel->entry == kBreakpoint) continue;
    kernel->first_byte = *kernel->entry;
    *kernel->entry = kBreakpoint;
  }
}

class KernelReporter : public Catch::StreamingReporterBase<KernelReporter> {
 public:
  using StreamingReporterBase::StreamingReporterBase;
  static std::string getDescription() { return "prints the kernels that ran"; }

  void testRunStarting(const Catch::TestRunInfo&) override {
    find_kernels();
    set_breakpoints();
  }
  void assertionStarting(const Catch::AssertionInfo&) override {}
  bool assertionEnded(const Catch::AssertionStats&) override { return true; }
  void testRunEnded(const Catch::TestRunStats&) override {
    stream << "level " << static_cast<int>(best_isa()) << '\n';
    for (const auto& kernel : kernels())
      if (kernel_at(kernel->entry)->reached) stream << "reached " << kernel->name << '\n';
  }
};
CATCH_REGISTER_REPORTER("kernels", KernelReporter)

}  // namespace
}  // namespace sherd::test
