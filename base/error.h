// Errors: one exception type with context frames, and the two functions that raise it.
// Invariant: numbers are formatted only when something has already failed, or in a frame that few
// push.
#pragma once

#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace sherd {

/// What failed, for the few callers that choose: `usage` ends the program with exit status 2, the
/// rest with 1.
enum class ErrorKind { usage, io, comm, device, memory, interrupted, numeric };

/// The one exception type. what() is "frame: frame: message (file:line)".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

namespace detail {

/// Text only; the only thread_local of the project. Outermost frame first.
inline std::vector<std::string>& context_frames() {
  thread_local std::vector<std::string> frames;
  return frames;
}

/// Joins text without a stream, which costs a microsecond: each op of a step pushes a frame.
template <class... A>
std::string concat(const A&... a) {
  if constexpr ((std::is_convertible_v<const A&, std::string_view> && ...)) {
    std::string text;
    (text.append(std::string_view(a)), ...);
    return text;
  } else {
    std::ostringstream out;
    ((out << a), ...);
    return out.str();
  }
}

}  // namespace detail

/// Pushes a frame such as "rank 2" or "unit blocks.3" that errors raised in its scope print.
class Context {
 public:
  template <class... A>
  explicit Context(const A&... a) {
    detail::context_frames().push_back(detail::concat(a...));
  }
  ~Context() { detail::context_frames().pop_back(); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

/// A message with the place it was written at; converts from a literal so that call sites stay
/// short.
struct Site {
  const char* message;
  const char* file;
  int line;
  // Not std::source_location, which clang 14 does not have.
  // NOLINTNEXTLINE(google-explicit-constructor): the conversion is the purpose.
  Site(const char* m, const char* f = __builtin_FILE(), int l = __builtin_LINE())
      : message(m), file(f), line(l) {}
};

namespace detail {

template <class... A>
[[noreturn]] void raise(ErrorKind kind, const Site& site, const A&... a) {
  std::ostringstream out;
  for (const auto& frame : context_frames()) out << frame << ": ";
  out << site.message;
  ((out << ' ' << a), ...);
  // A wrong use is explained by its message; the source line helps only with the rest.
  if (kind != ErrorKind::usage) out << " (" << site.file << ':' << site.line << ')';
  throw Error(kind, out.str());
}

}  // namespace detail

/// Throws Error(usage) "frames: message a b c"; say what was wanted, then what came.
template <class... A>
[[noreturn]] void fail(Site site, const A&... a) {
  detail::raise(ErrorKind::usage, site, a...);
}

/// The same with another kind.
template <class... A>
[[noreturn]] void fail_as(ErrorKind kind, Site site, const A&... a) {
  detail::raise(kind, site, a...);
}

/// fail(site, a...) unless `ok`.
template <class... A>
void check(bool ok, Site site, const A&... a) {
  if (!ok) [[unlikely]]
    detail::raise(ErrorKind::usage, site, a...);
}

}  // namespace sherd
