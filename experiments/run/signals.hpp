#pragma once

#include "autograd/error.hpp"

namespace heed {

/// A signal that was noted has ended what was being done: exit code 130.
struct Interrupted : Error {
  using Error::Error;
};

/// From here on SIGINT and SIGTERM are noted instead of ending the program, and what else a terminal, a batch system or a limit of
/// processor time sends before it ends a program: SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU, unless they are ignored. A second SIGINT ends it.
void note_signals();
/// Whether one has come.
bool interrupted();
/// How many have come.
int signals_noted();

/// Why a process is to stop: a person asked (SIGINT), its machine or node is taken from it, or its time is up.
enum class StopReason { asked, preempted, out_of_time };
/// By the last signal that has come: a batch system's warning is for the end of its time if that is near ($SLURM_JOB_END_TIME: in five
/// minutes or less); where the end is not known, SIGUSR1, SIGUSR2 and SIGXCPU are, and SIGTERM and SIGHUP are not (as submitit tells them
/// apart).
StopReason stop_reason();

}  // namespace heed
