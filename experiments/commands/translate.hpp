#pragma once

#include <filesystem>
#include <istream>
#include <ostream>

#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "nn/decode.hpp"

namespace heed {

struct TranslateOptions : ChosenRun {
  std::filesystem::path input;      ///< empty: standard input
  std::filesystem::path save;       ///< empty: standard output
  std::filesystem::path attention;  ///< .html, .svg, .pdf or .png with the attention of each word; empty: none
  BeamSettings beam{.width = 1, .length_penalty = 0.6};
  Index tokens = 0;        ///< most tokens of a translation; 0: longest_targets()
  Index best = 1;          ///< hypotheses written per line, at most beam.width
  bool scores = false;     ///< writes the log-probability and a tab before each translation
  bool at_once = false;    ///< translates each line before reading the next
  bool printable = false;  ///< for a terminal: control characters are shown as U+FFFD
};

/// Translates line by line: an empty line gives an empty line, any other its best translation, or its `best` hypotheses, each preceded by
/// the line's number and a tab; hypotheses with the same words as a better one are left out. Throws ConfigError for an unsuitable run or
/// options, FileError naming the line for a text that is not UTF-8, is too long for the model or cannot be read to its end, Error for a
/// file that cannot be written.
Exit translate(TranslateOptions const& options, std::istream& in, std::ostream& out);

}  // namespace heed
