// SIGINT, SIGTERM and SIGUSR1 as a wish to stop, which a loop asks for where it can save.
// Invariant: a second SIGINT ends the process at once, as it would without this object.
#pragma once

#include <array>
#include <csignal>

namespace sherd {

/// Catches the signals while it lives, and puts the former handlers back; one at a time in a
/// process.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Whether one of them came. Any thread may ask.
  bool requested() const { return signal() != 0; }
  /// The first that came, or 0.
  int signal() const;

 private:
  std::array<struct sigaction, 3> former_;
};

/// "SIGINT"
const char* signal_name(int signal);

}  // namespace sherd
