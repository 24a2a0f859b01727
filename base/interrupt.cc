#include "base/interrupt.h"

#include <atomic>

#include "base/error.h"

namespace sherd {
namespace {

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGUSR1};

// The kernel calls a plain function, so what it tells must lie here; only Interrupt touches it.
std::atomic<bool> installed{false};
std::atomic<int> first_signal{0};
std::atomic<int> num_sigint{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler may only touch lock-free atomics");

void on_signal(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  if (signal == SIGINT && num_sigint.fetch_add(1) > 0) {
    // Delivered with its default action when this handler returns: the shell sees a death by
    // SIGINT.
    ::signal(SIGINT, SIG_DFL);
    ::raise(SIGINT);
  }
}

}  // namespace

Interrupt::Interrupt() {
  check(!installed.exchange(true), "one Interrupt at a time");
  first_signal = 0;
  num_sigint = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // reads and writes go on
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &former_[i]);
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former_[i], nullptr);
  installed = false;
}

int Interrupt::signal() const { return first_signal; }

const char* signal_name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "a signal";
  }
}

}  // namespace sherd
