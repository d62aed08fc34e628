#pragma once

#include <string>
#include <vector>

#include "experiments/data/open.hpp"

namespace heed {

/// A span of a passage that answers a question.
struct Answer {
  std::string text;
  Index start = 0;  ///< its first byte in the passage
  bool operator==(Answer const&) const = default;
};

/// A labelled example as text, before tokens and delimiters are chosen.
struct Example {
  std::string first = {};                 ///< the text, the premise, the question, or the beginning to be continued
  std::string second = {};                ///< the hypothesis, the other sentence, or the passage; empty: none
  std::vector<std::string> options = {};  ///< continuations, one of which is right; empty: not a multiple choice
  std::string label = {};                 ///< the class; for a multiple choice the right option's number, from 0
  std::vector<Answer> answers = {};       ///< right spans of `second`; empty with `span`: there is no answer
  bool span = false;                      ///< whether a span of `second` is asked for
  std::string place = {};                 ///< "FILE:LINE", for messages
};

/// Examples by split. `test` is empty unless asked for.
struct Examples {
  std::vector<Example> training, held_out;
  std::vector<std::string> classes;       ///< labels in the order of their ids; empty for multiple choice and spans
  bool symmetric = false;                 ///< the order of the two texts has no meaning
  ReadFiles files;                        ///< "training", "held_out", "test"
  bool exact_match = false;               ///< the model is given which tokens of `second` occur in `first` (Chen et al. 2017)
  std::vector<double> weights = {};       ///< of the classes in the loss; empty: 1
  std::vector<std::string> remarks = {};  ///< on what the files hold
  std::string join = " ";                 ///< what stands between the texts where a language model reads them as one
};

/// What a name is but for its form: without case, compatible characters as one (NFKC_Casefold), one blank between words, numbers of up to
/// 15 characters as numbers (+1, 1.0, 01: 1).
std::string folded(std::string_view name);

/// The examples' remarks, the classes with their counts, and sentences on classes that differ in form alone, have one training example or
/// none, and on held-out examples whose texts are in the training part too.
std::vector<std::string> remarks_on(Examples const& examples);

/// Settings of a source of labelled examples: files with a description, or a synthetic task.
struct ExampleSource : Settings {
  /// Reads or draws the examples. `context.held_out` says whether `held_out` is the validation or the test split. Throws FileError for
  /// invalid files, naming file and line.
  virtual Examples read(DataContext const& context) = 0;
};

}  // namespace heed
