#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/ablation/jobs.hpp"

namespace heed {

/// The state of running trials as text: a line of counts, and a table of arms × seeds. If the page does not have fewer than `width` columns
/// and `height` lines, the line of counts alone. `left`: seconds left, negative if unknown.
std::string board_page(std::string const& title, std::vector<std::string> const& arms, std::vector<Job> const& jobs, double left,
                       std::size_t width, std::size_t height);

/// Estimated seconds until all jobs are done, with `at_a_time` jobs in parallel. A job is expected to take the mean time of its arm's
/// finished jobs, else of all finished jobs; a running job beyond 5 % of its steps is extrapolated. Negative if no time is known.
double seconds_left(std::vector<Job> const& jobs, Index at_a_time);

/// Shows the state of jobs on standard error: on a terminal as a live table, elsewhere with a line for each job that ends.
class Board {
 public:
  Board(std::string title, std::vector<std::string> arms, Index at_a_time, bool quiet);
  ~Board();
  Board(Board const&) = delete;
  Board& operator=(Board const&) = delete;

  /// Redraws the table. `changed`: the job whose state has changed, null if only time has passed.
  void update(std::vector<Job> const& jobs, Job const* changed);
  /// On a terminal, replaces the table by this text; elsewhere prints the text's first line if it has changed.
  void show(std::string const& text);
  void finish();

 private:
  void say(std::vector<Job> const& jobs, Job const& changed);
  void erase();

  std::string title_;
  std::vector<std::string> arms_;
  Index at_a_time_;
  bool quiet_, terminal_;
  std::size_t lines_ = 0;  ///< lines of the table on the terminal
  std::string last_line_;
};

}  // namespace heed
