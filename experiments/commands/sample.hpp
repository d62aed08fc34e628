#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/run/experiment.hpp"
#include "experiments/run/session.hpp"
#include "nn/generate.hpp"

namespace heed {

/// What the command line says of samples.
struct SampleOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, or the run's name in the output folder
  Places places;
  std::string weights;                 ///< last, average, best; empty: as usual (open_run)
  std::vector<std::string> prompts;    ///< none: a new line, or the beginning of a sentence
  std::optional<std::int64_t> tokens;  ///< at most, after the prompt; default: 500, for sentences the model's context
  std::optional<std::int64_t> count;   ///< samples of each prompt; default: 1, for sentences 10
  SamplingSettings sampling;
  std::int64_t seed = 1;
  std::optional<std::string> precision;  ///< of the factors of products: float32, bfloat16; default: as the run was trained
  bool printable = false;                ///< for a terminal: control characters are shown as U+FFFD
};

/// Writes text from a trained model as it is generated; more than one text below a line "--- 1 of 4 ---" each, sentences on lines.
/// Sample c of prompt p draws from a stream of its own, so that it does not depend on how many there are. Throws ConfigError if there is no
/// such run, if its model makes no text, for a prompt that it cannot read, or a precision that is not its numbers'; FileError for a damaged
/// run.
Exit sample(SampleOptions const& options, std::ostream& out);

/// Bytes, cut anywhere, as text that can be shown: what begins a character waits for the rest of it; what belongs to none becomes U+FFFD.
class Utf8Writer {
 public:
  /// `printable`: control characters other than tab and new line become U+FFFD too.
  explicit Utf8Writer(bool printable = false) : printable_(printable) {}
  /// What can be shown now.
  std::string push(std::string_view bytes);
  /// What still waits.
  std::string finish();

 private:
  std::string take(bool all);
  bool printable_;
  std::string waiting_;
};

}  // namespace heed
