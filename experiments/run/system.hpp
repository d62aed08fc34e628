#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace heed {

/// The operating system, its kernel and the machine's architecture: "Debian GNU/Linux 13 (trixie), Linux 6.12.48 x86_64".
std::string system_name();
/// A path that leads to the file of the running program; empty if the system does not tell.
std::filesystem::path program_file();
/// Bytes of memory that can still be had on this machine (and within a control group's limit).
double available_memory();

/// Whether standard error is a terminal that can move its cursor.
bool on_terminal();
/// Columns and lines of the terminal behind standard error; 80 and 24 where they cannot be told.
std::size_t terminal_width();
std::size_t terminal_height();

/// Seconds as 0:27, 12:05, 3:05:10.
std::string clock_time(double seconds);

}  // namespace heed
