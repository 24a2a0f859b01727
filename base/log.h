// Lines for a person, passed along as an object: one Log a rank, no global state.
// Invariant: a line reaches the stream whole, in one write.
#pragma once

#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"

namespace sherd {

enum class LogLevel { quiet, normal };

/// Thread-safe, as long as no other object writes to the same stream at the same time.
class Log {
 public:
  /// `prefix` such as "rank 2" stands before each line; may be empty. Warnings pass `quiet`.
  explicit Log(std::ostream& out, std::string prefix = "", LogLevel level = LogLevel::normal)
      : out_(out), prefix_(prefix.empty() ? "" : prefix + ": "), level_(level) {}

  /// A line of the usual course of events.
  template <class... A>
  void info(const A&... a) {
    if (level_ != LogLevel::quiet) write("", detail::concat(a...));
  }

  /// Something that the user should know although the run goes on.
  template <class... A>
  void warn(const A&... a) {
    write("warning: ", detail::concat(a...));
  }

  /// info() the first time that this text comes.
  template <class... A>
  void info_once(const A&... a) {
    const std::string text = detail::concat(a...);
    {
      const std::lock_guard lock(mutex_);
      if (!said_.insert(text).second) return;
    }
    info(text);
  }

 private:
  void write(const char* kind, const std::string& text) {
    const std::string line = prefix_ + kind + text + '\n';
    const std::lock_guard lock(mutex_);
    out_.write(line.data(), static_cast<std::streamsize>(line.size()));
    out_.flush();
  }

  std::ostream& out_;
  std::string prefix_;
  LogLevel level_;
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace sherd
