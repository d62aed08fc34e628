#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <ostream>

#include "experiments/run/session.hpp"
#include "nn/decode.hpp"

namespace heed {

/// What the command line says of a translation.
struct TranslateOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Places places;
  std::string weights;              ///< last, average, best; empty: as usual (open_run)
  std::filesystem::path input;      ///< empty: standard input
  std::filesystem::path save;       ///< empty: standard output
  std::filesystem::path attention;  ///< .html, .svg, .pdf or .png: where each word looked; empty: nowhere
  BeamSettings beam{.width = 1, .length_penalty = 0.6};
  std::int64_t tokens = 0;  ///< at most, of a translation; 0: longest_targets()
  std::int64_t best = 1;    ///< hypotheses of a line that are written, at most beam.width
  bool scores = false;      ///< before each translation the logarithm of its probability, and a tab
  bool at_once = false;     ///< each line is translated before the next is read
  bool printable = false;   ///< for a terminal: control characters are shown as U+FFFD
};

/// Translates line by line: an empty line into an empty one, every other one into the best that is found, or into its `best` hypotheses,
/// each behind its line's number and a tab, those of the same words as a better one left out. Throws ConfigError for a run or options that
/// cannot do it, FileError naming the line for a text that is not UTF-8, too long for the model or cannot be read to its end, Error for a
/// file that cannot be written.
Exit translate(TranslateOptions const& options, std::istream& in, std::ostream& out);

}  // namespace heed
