#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/data/files.hpp"
#include "nn/batch.hpp"
#include "nn/signature.hpp"

namespace heed {

struct Example;
class Tokenizer;

/// Groups of targets whose accuracy is reported separately (the part "groups" holds their numbers). A prediction is correct if the most
/// probable of the tokens that have a category is of the target's category.
struct TargetGroups {
  std::vector<std::string> names;
  std::vector<Index> categories;  ///< by token; −1: none
};

/// Size of the held-out text in units that do not depend on the tokenizer. Words are separated by blanks, and the end of a line counts as
/// one, as in the usual word counts of WikiText.
struct TextUnits {
  double tokens = 0, words = 0, bytes = 0;
};

/// The metrics of a simple rule on the held-out data.
struct Baseline {
  std::string name;
  std::vector<std::pair<std::string, double>> values;  ///< by the metrics' names behind "validation.": "accuracy", "loss"
};

/// Size of a labelled example's longest sequence.
struct ExampleSize {
  Index tokens, texts;
};

/// An alignment link: a word of a target and the word of its source that it comes from, by position, without beginning marks. As in the
/// literature on word alignment a link is sure or only possible; a word with several possible sources has links that are not sure.
struct Link {
  Index target, source;
  bool sure = true;
  bool operator==(Link const&) const = default;
};

/// Rows [first, first + count).
struct RowRange {
  Index first, count;
};

/// The rows of batch number `index` of a split that has `rows` rows, `batch` of them in each batch, fewer in the last. Throws Error if
/// there is no such batch.
RowRange rows_of_batch(std::string const& split, Index index, Index batch, Index rows);

/// A source of batches. A batch is a pure function of the seed and its number: resuming needs no state, arms of an ablation see the same
/// data, and validation data are the same for every seed and arm.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// The parts of every batch.
  virtual Signature signature() const = 0;
  /// Number of token ids, at least 1.
  Index vocabulary() const { return signature()["inputs"].classes; }
  /// Micro-batch number `index` of training: `batch` sequences of `context` tokens. Throws FileError if there is no such batch.
  virtual Batch training(Index index, Index batch, Index context) const = 0;
  /// Number of validation batches (0: none).
  virtual Index validation_batches(Index batch, Index context) const = 0;
  /// Validation batch number `index`: windows without overlap, in order; the last may be shorter (padded with targets −1).
  virtual Batch validation(Index index, Index batch, Index context) const = 0;

  /// The groups of the targets in validation batches.
  virtual TargetGroups groups() const { return {}; }

  /// Alignment links of every sequence of a validation batch; empty: unknown.
  virtual std::vector<std::vector<Link>> links(Index /*index*/, Index /*batch*/, Index /*context*/) const { return {}; }

  /// The target of held-out sequence number `row` as written in the data, including words that the vocabulary lacks; nothing if there is no
  /// such text.
  virtual std::optional<std::string> reference(Index /*row*/) const { return std::nullopt; }

  /// Held-out example number `row` before tokenization; null for data without labelled examples.
  virtual Example const* example(Index /*row*/) const { return nullptr; }
  /// The passage of held-out example number `row` from its token `first` to its token `last`, as written, in whole characters.
  virtual std::string stretch(Index /*row*/, Index /*first*/, Index /*last*/) const { return ""; }
  /// From now on each text of an example begins with what joins it to the text before.
  virtual void join_texts() {}
  /// Sentences on what the data hold that may be surprising, and the classes with their counts.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// For labelled examples: the size of the longest sequence of each training or held-out example, without special tokens.
  virtual std::vector<ExampleSize> example_sizes(bool /*held_out*/) const { return {}; }
  /// A sentence on the labelled examples that do not fit into `context` tokens; nothing if all fit.
  virtual std::optional<std::string> cut_short(Index /*context*/) const { return std::nullopt; }
  /// Names of the labels' classes; empty if there are none.
  virtual std::vector<std::string> classes() const { return {}; }

  /// The tokenizer of "inputs" and "targets"; null: none.
  virtual std::shared_ptr<Tokenizer const> tokenizer_handle() const { return nullptr; }
  /// The tokenizer of the part "source".
  virtual std::shared_ptr<Tokenizer const> source_tokenizer_handle() const { return tokenizer_handle(); }
  /// Both as JSON text, to be kept with a trained model (see restore_tokenizer); empty: no tokenizer.
  std::string tokenizer() const;
  std::string source_tokenizer() const;

  /// Size of the held-out text; nothing if the held-out data are not text, or not all of one text.
  virtual std::optional<TextUnits> held_out_units() const { return std::nullopt; }

  /// The files that the data were read from, which identify them.
  virtual ReadFiles files() const { return {}; }

  /// For summary.json: the hashes of the files and known properties ("sha256", "tokens", "ngram": {"1": nats, …}, "entropy"), in nats per
  /// token of the validation split.
  virtual nlohmann::json describe() const = 0;
  /// The lowest expected loss of any model on the first `rows` validation sequences of `context` tokens, in nats per token, if known: −log
  /// P of their tokens under the distribution that they were drawn from.
  virtual std::optional<double> optimum(Index /*rows*/, Index /*context*/) const { return std::nullopt; }
  /// Reference losses in nats per token to compare a model's validation loss with: {"5-gram", 1.669}, {"entropy", 1.234}.
  virtual std::vector<std::pair<std::string, double>> reference_losses() const { return {}; }
  /// Metrics of simple rules on the held-out data: {"majority class", {{"accuracy", 0.501}}}.
  virtual std::vector<Baseline> baselines() const { return {}; }
};

}  // namespace heed
