#pragma once

namespace heed {

/// From here on SIGINT and SIGTERM are noted instead of ending the program, and what else a terminal, a batch system or a limit of
/// processor time sends before it ends a program: SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU, unless they are ignored. A second SIGINT ends it.
void note_signals();
/// Whether one has come.
bool interrupted();

}  // namespace heed
