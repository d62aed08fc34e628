#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/tensor.hpp"
#include "experiments/data/examples/example.hpp"
#include "experiments/data/tokenizer.hpp"

namespace heed {

/// Rows of tokens as int64 [R, T], T at least 1, with a filler behind the end of each.
template <class Token>
Tensor padded(std::vector<std::vector<Token>> const& rows, double filler) {
  std::size_t longest = 1;
  for (auto const& row : rows) longest = std::max(longest, row.size());
  Tensor result = Tensor::full({std::ssize(rows), static_cast<Index>(longest)}, filler, DType::int64);
  auto const values = result.mutable_data<std::int64_t>();
  for (std::size_t i = 0; i < rows.size(); ++i) std::ranges::copy(rows[i], values.begin() + static_cast<std::ptrdiff_t>(i * longest));
  return result;
}

/// Labelled examples as tokens. Batches hold the texts without special tokens, padded with −1; a view assembles the sequences that a model
/// reads (delimited, segmented, continued):
///
///   first    int64 [B, T]     the text, or the first of two
///   second   int64 [B, T]     the second; where an answer is asked for, the passage
///   options  int64 [B, K, T]  what to choose from
///   label    int64 [B]        the class, or the number of the right option
///   answer   int64 [B, 2]     the first and last token of the answer in `second`; −1: there is none
///
/// An epoch is every training example once in an order of its own; rows of a batch are of about one length (PairBatches).
///
/// Throws FileError for an example that is wrong, with its place.
std::unique_ptr<Dataset> examples_data(Examples examples, std::shared_ptr<Tokenizer const> tokenizer, Index pool, std::uint64_t seed);
/// From now on each text of an example, of such data, begins with what joins it to the text before.
void join_texts(Dataset& data);

/// `class_weights: {positive: 2}`: the factor of one class's examples in the loss.
struct ClassWeight : Settings {
  double weight = 1;
  std::vector<Field> fields() override { return {field(&weight, "weight", "factor of the class's examples in the loss").above(0)}; }
  bool from_word(std::string_view text) override;
  bool has_own_words() const override { return true; }
  std::string word() override;
};

/// Settings of a source of labelled examples, files with a description or a synthetic task, with the keys that all of them share:
/// `{kind: topic, tokenizer: char, pool: 16, …}`.
struct ExampleSource : Settings {
  Choice tokenizer = tokenizer_choice("byte");
  std::string join = " ";
  Index pool = 16;
  MapOf<ClassWeight> class_weights;

  /// The source's own keys; they precede the shared ones.
  virtual std::vector<Field> source_fields() = 0;
  std::vector<Field> fields() final;
  /// Reads or draws the examples. `context.held_out` says whether `held_out` is the validation or the test split. Throws FileError for
  /// invalid files, naming file and line.
  virtual Examples read(DataContext const& context) = 0;
};

/// The examples of a file as the held-out data of a trained model, read by the keys of the model's data, with its classes and tokenizer.
/// Throws ConfigError about `run` if these data are no labelled examples from files, FileError as FileExamples::read().
std::unique_ptr<Dataset> open_examples_of(std::filesystem::path const& file, Choice const& data, std::vector<std::string> const& classes,
                                          std::string const& tokenizer, bool labelled, std::string const& run);

/// What a source reads, as data. Throws what read() throws.
std::unique_ptr<Dataset> open_examples(ExampleSource& source, DataContext const& context);

/// A source as a kind of data: `Declared<DataKind> const topic_data{examples_kind<Topic>("topic", "…")};`.
template <class Source>
DataKind examples_kind(std::string name, std::string help, DataParts parts = DataParts::validation) {
  return data_kind<Source>(
      std::move(name), std::move(help),
      [](Source const& settings, DataContext const& context) {
        Source source = settings;
        return open_examples(source, context);
      },
      parts);
}

}  // namespace heed
