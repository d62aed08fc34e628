#pragma once

#include "autograd/error.hpp"

namespace heed {

/// Thrown when a noted signal has stopped the work: exit code 130.
struct Interrupted : Error {
  using Error::Error;
};

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
