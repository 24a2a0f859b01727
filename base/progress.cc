#include "base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace sherd {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kPlainSeconds = 5;

/// Cut to the width of the terminal: a wrapped line could not be drawn over. Counts UTF-8
/// characters.
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 && seen++ == columns)
      return text.substr(0, i);
  }
  return text;
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 &&
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
    return 80;
  return size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

ProgressMode progress_mode(int fd) {
  return ::isatty(fd) == 1 ? ProgressMode::terminal : ProgressMode::plain;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress::Progress(std::ostream& out, ProgressMode mode, Clock now)
    : out_(out), mode_(mode), now_(std::move(now)) {}

void Progress::update(std::int64_t step, std::int64_t steps, std::string_view text) {
  if (mode_ == ProgressMode::quiet) return;
  const double now = now_();
  const bool first = first_step_ < 0;
  if (first) {
    first_step_ = step;
    started_ = now;
  }
  pending_ =
      "step " + std::to_string(step) + '/' + std::to_string(steps) + "  " + std::string(text);
  if (step > first_step_ && step < steps) {
    const double per_step = (now - started_) / static_cast<double>(step - first_step_);
    pending_ += "  " + format_seconds(per_step * static_cast<double>(steps - step)) + " left";
  }
  const double pause = mode_ == ProgressMode::terminal ? kRedrawSeconds : kPlainSeconds;
  if (!first && step < steps && now - shown_ < pause) return;
  shown_ = now;
  draw(pending_);
}

void Progress::line(std::string_view text) {
  if (mode_ == ProgressMode::quiet) return;
  if (mode_ == ProgressMode::terminal && !drawn_.empty()) out_ << "\r\x1b[K";
  out_ << text << '\n';
  if (mode_ == ProgressMode::terminal && !drawn_.empty()) out_ << drawn_;
  out_.flush();
}

void Progress::finish() {
  // The last state of an interrupted run may not have been shown yet.
  if (!pending_.empty() && mode_ != ProgressMode::quiet) draw(pending_);
  if (mode_ == ProgressMode::terminal && !drawn_.empty()) out_ << '\n' << std::flush;
  drawn_.clear();
}

void Progress::draw(std::string_view text) {
  if (mode_ == ProgressMode::terminal) {
    drawn_ = cut(text, terminal_columns() - 1);
    out_ << '\r' << drawn_ << "\x1b[K" << std::flush;
  } else {
    out_ << text << '\n' << std::flush;
  }
  pending_.clear();
}

std::string format_seconds(double seconds) {
  const auto total = static_cast<long long>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  char text[40];
  if (total >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", total / 3600, total / 60 % 60,
                  total % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", total / 60, total % 60);
  }
  return text;
}

}  // namespace sherd
