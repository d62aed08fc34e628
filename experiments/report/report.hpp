#pragma once

#include <filesystem>
#include <vector>

namespace heed {

/// Writes report.html and figures/*.svg and *.pdf for a finished run, study or ablation, from the files in its folder. If gnuplot is
/// missing or hangs, a note goes to standard error and into the report, which then lacks figures; an existing report of the same results
/// with figures is kept. `running`: trials that have not ended may be in training, and the page refreshes itself. Throws FileError, and
/// Interrupted as draw() does.
void write_report(std::filesystem::path const& folder, bool quiet, bool running = true);

/// Whether the report belongs to the current summary.
bool has_report(std::filesystem::path const& folder);

/// One page of several folders, at `path`. Throws likewise.
void write_report(std::vector<std::filesystem::path> const& folders, std::filesystem::path const& path, bool quiet);

}  // namespace heed
