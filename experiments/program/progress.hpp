#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "autograd/index.hpp"

namespace heed {

/// State shown by a progress bar or line.
struct ProgressState {
  std::string title;  ///< "gpt-tiny"
  std::string unit;   ///< what is counted: "steps"
  std::string note;   ///< shown at the end: "loss 1.92  210k tokens/s"
  Index total = 0;
  Index start = 0;  ///< done before this call
  Index done = 0;
  double seconds = 0;  ///< since this call's start
};

/// "gpt-tiny  42 %  ━━━━━━━━╸──────────  840/2000 steps  43.1/s  0:27 left  loss 1.92", at most `width` columns: the bar shrinks first and
/// then the note is cut. Empty on terminals narrower than 40 columns.
std::string progress_bar(ProgressState const& state, std::size_t width);

/// "gpt-tiny: 840/2000 steps, 42 %, 43.1 steps/s, 0:27 left, loss 1.92".
std::string progress_line(ProgressState const& state);

/// Progress of work that takes longer than two seconds: on a terminal a bar with rate and remaining time, redrawn at most ten times a
/// second; elsewhere a plain line every ten seconds, less often for long work; nothing if quiet. Goes to standard error.
class Progress {
 public:
  /// `unit`: what total and done count ("steps").
  Progress(std::string title, Index total, Index done, bool quiet, std::string unit = "steps");
  ~Progress();
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;

  /// `note`: shown at the end of the bar ("loss 1.92, 210k tokens/s").
  void update(Index done, std::string const& note);
  /// Prints a line above the bar: an evaluation's result, a warning.
  void message(std::string const& line);
  /// Removes the bar; later output starts on a fresh line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  ProgressState state_;
  bool quiet_, terminal_, drawn_ = false;
  Clock::time_point began_, next_;  ///< next_: earliest time of the next drawing
};

}  // namespace heed
