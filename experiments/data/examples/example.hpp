#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/data/open.hpp"

namespace heed {

/// A stretch of a passage that answers a question.
struct Answer {
  std::string text;
  std::int64_t start = 0;  ///< its first byte in the passage
  bool operator==(Answer const&) const = default;
};

/// One labelled example, as text: what is told of it, before a model's way of reading it (tokens, delimiters) is chosen.
struct Example {
  std::string first = {};                 ///< the text, the premise, the question, or what is to be continued
  std::string second = {};                ///< the hypothesis, the other sentence, or the passage; empty: none
  std::vector<std::string> options = {};  ///< continuations, of which one is right; empty: it is no multiple choice
  std::string label = {};                 ///< the class; of a multiple choice the right option's number, from 0
  std::vector<Answer> answers = {};       ///< right stretches of `second`; empty and `span`: it cannot be answered
  bool span = false;                      ///< whether a stretch of `second` is asked for
  std::string place = {};                 ///< "FILE:LINE", for messages
};

/// Examples by part. `test` is empty unless it was asked for.
struct Examples {
  std::vector<Example> training, held_out;
  std::vector<std::string> classes;  ///< labels in the order of their numbers; empty for multiple choice and spans
  bool symmetric = false;            ///< the two texts have no order
  ReadFiles files;                   ///< "training", "held_out", "test"
  bool exact_match = false;          ///< a model is told which tokens of `second` occur in `first` (Chen et al. 2017)
};

/// Settings from which labelled examples come: of files by description, or of a synthetic task.
struct ExampleSource : Settings {
  /// Reads or draws them. `context.held_out` says whether `held_out` is the validation or the test part. Throws FileError for files that
  /// are wrong, naming file and line.
  virtual Examples read(DataContext const& context) const = 0;
};

}  // namespace heed
