#pragma once

#include <filesystem>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

struct ReportOptions {
  std::vector<std::filesystem::path> folders;  ///< of ablations, runs and studies; a name is looked for in the output folder too
  Places places;
  bool quiet = false;
};

/// `heed report`: the report of each folder and, of several, one report.html of all in the output folder; of an ablation that is running,
/// from what it has finished. Throws ConfigError for a folder that is not there, FileError.
Exit report(ReportOptions const& options);

}  // namespace heed
