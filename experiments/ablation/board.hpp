#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/ablation/jobs.hpp"

namespace heed {

/// What a table of running trials says: arms × seeds with their state, a line of counts above. At most `width` columns and `height` lines;
/// where the table does not fit, the line of counts alone. `left`: seconds left, negative if unknown.
std::string board_page(std::string const& title, std::vector<std::string> const& arms, std::vector<Job> const& jobs, double left,
                       std::size_t width, std::size_t height);

/// "attention: 12/36 runs, 4 running, 3:20 left".
std::string counts_of(std::string const& title, std::vector<Job> const& jobs, double left);

/// Seconds until the waiting and running jobs are done: from how long those of the same arm took (of any, else). Negative if none is known.
double seconds_left(std::vector<Job> const& jobs, std::int64_t at_a_time);

/// Shows how jobs stand: on a terminal a live table, elsewhere a line for each that ends. Goes to standard error.
class Board {
 public:
  Board(std::string title, std::vector<std::string> arms, std::int64_t at_a_time, bool quiet);
  ~Board();
  Board(Board const&) = delete;
  Board& operator=(Board const&) = delete;

  void update(std::vector<Job> const& jobs, Job const* changed);
  /// On a terminal: this text in the table's place; elsewhere its first line, if that has changed.
  void show(std::string const& text);
  /// Takes the live table away.
  void finish();

 private:
  void say(std::vector<Job> const& jobs, Job const& changed);
  void erase();

  std::string title_;
  std::vector<std::string> arms_;
  std::int64_t at_a_time_;
  bool quiet_, terminal_;
  std::size_t lines_ = 0;  ///< of the table that stands on the terminal
  std::string said_;
};

}  // namespace heed
