// A stream for Trainer::run that fails where a narrated step says something: a way to fail in the
// middle of forward, backward, the update or a save.
#pragma once

#include <array>
#include <functional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>

namespace sherd::test {

/// Calls `fail` when a piece of text that holds `where` is written; what it throws reaches the
/// writer.
class FailingLines final : public std::ostream {
 public:
  FailingLines(std::string where, std::function<void()> fail)
      : std::ostream(nullptr), buffer_(std::move(where), std::move(fail)) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);
  }

 private:
  class Buffer final : public std::streambuf {
   public:
    Buffer(std::string where, std::function<void()> fail)
        : where_(std::move(where)), fail_(std::move(fail)) {}

   private:
    std::streamsize xsputn(const char* text, std::streamsize n) override {
      const std::string_view piece(text, static_cast<std::size_t>(n));
      if (piece.find(where_) != std::string_view::npos) fail_();
      return n;
    }
    int_type overflow(int_type c) override { return traits_type::not_eof(c); }

    std::string where_;
    std::function<void()> fail_;
  };
  Buffer buffer_;
};

/// In forward, backward, the update and a save: as a narrated step says it.
inline constexpr std::array<const char*, 4> kPlaces = {
    "uses blocks.1 in forward", "uses blocks.1 in backward", "updates its part", "gives its part"};

}  // namespace sherd::test
