#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/run/experiment.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// What the command line says of an export.
struct ExportOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, its name in the output folder, or a folder of another program's
  std::filesystem::path folder;
  Places places;
  std::string format;
  bool quiet = false;
};

/// Writes a trained model for another program into a folder that is not there yet, which appears whole or not at all (make_folder). Throws
/// ConfigError for a folder that holds something, an unknown format, and a model that the format has no words for, naming its keys.
Exit export_model(ExportOptions const& options, std::ostream& out);

}  // namespace heed
