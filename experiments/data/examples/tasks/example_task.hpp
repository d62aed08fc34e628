#pragma once

#include <string>
#include <vector>

#include "autograd/random.hpp"
#include "experiments/data/examples/dataset.hpp"

namespace heed {

/// A synthetic task of labelled examples made of English words, so that any tokenizer can read them.
///
/// Example i is drawn from Stream(seed, "data").child(i), held-out example i from Stream(0, NAME.held_out).child(i), for any seed; its
/// answer is i mod answers(), so that answers are balanced. No training example has the texts of a held-out one, and a smaller training set
/// is a prefix of a larger one.
struct ExampleTask : ExampleSource {
  Index training = 1'000, validation = 1'000;

  /// The task's own keys.
  virtual std::vector<Field> keys() = 0;
  /// Names of the answers, if they are labels.
  virtual std::vector<std::string> classes() const { return {}; }
  virtual Index answers() const { return std::ssize(classes()); }
  /// The label of texts that are ungrammatical or false.
  virtual std::string untrue() const { return ""; }
  /// Reads what write() needs; the files that were read.
  virtual ReadFiles open(DataContext const&) { return {}; }
  /// Makes an example with this answer; all other choices are drawn.
  virtual Example write(Index answer, Stream const& draws) const = 0;

  std::vector<Field> source_fields() final;
  /// Throws Error if nearly all distinct examples are held out.
  Examples read(DataContext const& context) final;
};

/// Words separated by blanks.
std::string joined(std::vector<std::string> const& words);

}  // namespace heed
