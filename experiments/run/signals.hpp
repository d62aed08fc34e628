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

}  // namespace heed
