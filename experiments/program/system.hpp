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

/// From now on SIGINT and SIGTERM are noted instead of ending the program. So are the signals that a terminal, a batch system or a limit of
/// CPU time sends before ending a program, unless they are ignored: SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU. A second SIGINT ends the program.
void note_signals();
/// Whether a signal has been noted.
bool interrupted();
/// Number of signals noted.
int signals_noted();

/// Why a process must stop: a person asked (SIGINT), its machine or node is taken away, or its time is up.
enum class StopReason { asked, preempted, out_of_time };
/// The reason to stop: asked after a SIGINT. If $SLURM_JOB_END_TIME is set, out_of_time if that is at most five minutes away, else
/// preempted. Otherwise by the last signal: SIGUSR1, SIGUSR2 and SIGXCPU mean out_of_time, SIGTERM and SIGHUP preempted (as in submitit).
StopReason stop_reason();

}  // namespace heed
