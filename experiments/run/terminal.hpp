#pragma once

#include <cstddef>
#include <string>

namespace heed {

/// Whether standard error is a terminal that can move its cursor.
bool on_terminal();
/// Columns and lines of the terminal behind standard error; 80 and 24 where they cannot be told.
std::size_t terminal_width();
std::size_t terminal_height();

/// Seconds as 0:27, 12:05, 3:05:10.
std::string clock_time(double seconds);

}  // namespace heed
