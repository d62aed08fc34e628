#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "autograd/index.hpp"

namespace heed {

/// Operating system, kernel and architecture: "Debian GNU/Linux 13 (trixie), Linux 6.12.48 x86_64".
std::string system_name();
/// A path to the running program's file; empty if unknown.
std::filesystem::path program_file();
/// Memory available on this machine (and within the limits of a control group and of the address space), in bytes.
double available_memory();

/// The integer that an environment variable holds; nothing if it is not set or holds something else.
std::optional<Index> integer_in_environment(char const* variable);

/// Whether standard error is a terminal with cursor movement.
bool on_terminal();
/// Columns and lines of the terminal at standard error; 80 and 24 if unknown.
std::size_t terminal_width();
std::size_t terminal_height();

/// Seconds of the steady clock from `start` to now.
double seconds_since(std::chrono::steady_clock::time_point start);
/// Seconds as 0:27, 12:05, 3:05:10.
std::string clock_time(double seconds);

}  // namespace heed
