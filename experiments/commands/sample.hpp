#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/generate.hpp"

namespace heed {

/// Options of `heed sample`.
struct SampleOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Folders folders;
  std::string weights;               ///< last, average, best; empty: the default of open_run()
  std::vector<std::string> prompts;  ///< empty: a line break, or the beginning of a sentence
  std::optional<Index> tokens;       ///< at most, after the prompt; default: 500, for sentences the model's context
  std::optional<Index> count;        ///< samples per prompt; default: 1, for sentences 10
  SamplingSettings sampling;
  Index seed = 1;
  std::optional<std::string> precision;  ///< of products' factors: float32, bfloat16; default: as in training
  bool printable = false;                ///< for a terminal: control characters are shown as U+FFFD
};

/// Writes text from a trained model as it is generated: several texts each below a line "--- 1 of 4 ---", sentences one per line. Sample c
/// of prompt p draws from its own stream, so that it does not depend on how many there are. Throws ConfigError if there is no such run, if
/// its model generates no text, for a prompt that it cannot read, or a precision that does not fit its dtype; FileError for a damaged run.
Exit sample(SampleOptions const& options, std::ostream& out);

/// Converts a stream of bytes to printable text: incomplete characters wait for their remaining bytes; bytes that are not UTF-8 become
/// U+FFFD.
class Utf8Writer {
 public:
  /// `printable`: control characters other than tab and line feed become U+FFFD too.
  explicit Utf8Writer(bool printable = false) : printable_(printable) {}
  /// The text that is complete so far.
  std::string push(std::string_view bytes) {
    waiting_ += bytes;
    return take(false);
  }
  /// The remaining bytes.
  std::string finish() { return take(true); }

 private:
  std::string take(bool all);
  bool printable_;
  std::string waiting_;
};

}  // namespace heed
