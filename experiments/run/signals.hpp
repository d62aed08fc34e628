#pragma once

namespace heed {

/// From here on SIGINT and SIGTERM are noted instead of ending the program; a second SIGINT ends it.
void note_signals();
/// Whether one has come.
bool interrupted();

}  // namespace heed
