// How a run shows where it is: one line that changes on a terminal, a plain line now and then when
// piped.
// Invariant: the first and the last step are always shown; text by others goes through line().
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace sherd {

enum class ProgressMode { terminal, plain, quiet };

/// terminal if `fd` is one, else plain.
ProgressMode progress_mode(int fd);

/// Seconds that never go back; tests give their own.
using Clock = std::function<double()>;
double steady_seconds();

/// Not thread-safe.
class Progress {
 public:
  Progress(std::ostream& out, ProgressMode mode, Clock now = steady_seconds);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// "step 120/2000  loss 2.31  1:12 left"; the remaining time follows from the steps since the
  /// first call.
  void update(std::int64_t step, std::int64_t steps, std::string_view text);
  /// A line of its own, above the changing one.
  void line(std::string_view text);
  /// Ends the changing line. Called by the destructor too.
  void finish();

 private:
  void draw(std::string_view text);

  std::ostream& out_;
  ProgressMode mode_;
  Clock now_;
  double started_ = 0, shown_ = 0;
  std::int64_t first_step_ = -1;
  std::string pending_, drawn_;
};

/// 3725 s is "1:02:05", 65 s is "1:05".
std::string format_seconds(double seconds);

}  // namespace sherd
