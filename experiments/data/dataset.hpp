#pragma once

#include <cstdint>
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

/// Targets whose accuracy is told apart (the part "groups" holds their numbers), and what is right there: of the tokens that have a
/// category, the most probable one is of the target's category.
struct TargetGroups {
  std::vector<std::string> names;
  std::vector<std::int64_t> categories;  ///< of every token; −1: none
};

/// How much the held-out text is, in units that do not depend on the tokenizer. Words stand between blanks, and the end of a line counts
/// as one, as in the usual word counts of WikiText.
struct TextUnits {
  double tokens = 0, words = 0, bytes = 0;
};

/// What a simple rule, which reads little or nothing, reaches on the held-out rows.
struct Baseline {
  std::string name;
  std::vector<std::pair<std::string, double>> values;  ///< of metrics, as they are called behind "validation.": "accuracy", "loss"
};

/// Of a labelled example's longest sequence.
struct ExampleSize {
  std::int64_t tokens, texts;
};

/// A word of a target comes from a word of its source: both by their places, marks of beginning left out. Of a word that may come from
/// several places the links are not sure.
struct Link {
  std::int64_t target, source;
  bool sure = true;
  bool operator==(Link const&) const = default;
};

/// Where batches come from. A batch is a pure function of the seed and its number, so that resuming needs no state, arms of an
/// ablation see the same data, and evaluation is the same for every seed and arm.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// What every batch holds.
  virtual Signature signature() const = 0;
  /// Number of token ids that may be read, at least 1.
  std::int64_t vocabulary() const { return signature()["inputs"].classes; }
  /// Micro-batch number `index` of training: `batch` rows of `context` tokens. Throws FileError if there is no such batch.
  virtual Batch training(std::int64_t index, std::int64_t batch, std::int64_t context) const = 0;
  /// How many validation batches there are (0: none).
  virtual std::int64_t validation_batches(std::int64_t batch, std::int64_t context) const = 0;
  /// Validation batch number `index`: windows without overlap, in order; the last may be shorter (padded with targets −1).
  virtual Batch validation(std::int64_t index, std::int64_t batch, std::int64_t context) const = 0;

  /// The groups of targets in validation batches.
  virtual TargetGroups groups() const { return {}; }

  /// Of every row of a validation batch, which targets come from which places of the source, as far as there is such a thing; empty: it is
  /// not known.
  virtual std::vector<std::vector<Link>> links(std::int64_t index, std::int64_t batch, std::int64_t context) const {
    return static_cast<void>(index), static_cast<void>(batch), static_cast<void>(context), std::vector<std::vector<Link>>();
  }

  /// The target of held-out row number `row` as the data's own text has it, words that the vocabulary lacks included; nothing where there
  /// is no such text.
  virtual std::optional<std::string> reference(std::int64_t row) const { return static_cast<void>(row), std::nullopt; }

  /// Held-out row number `row` as it was before it became tokens, of labelled examples; null for other data.
  virtual Example const* example(std::int64_t row) const { return static_cast<void>(row), nullptr; }
  /// Of labelled examples: of each training example, or held-out one, the tokens and texts of its longest sequence, special tokens left
  /// out.
  virtual std::vector<ExampleSize> example_sizes(bool held_out) const { return static_cast<void>(held_out), std::vector<ExampleSize>(); }
  /// In words, what of labelled examples has no room in sequences of so many tokens; nothing: all has.
  virtual std::optional<std::string> cut_short(std::int64_t context) const { return static_cast<void>(context), std::nullopt; }
  /// Names of the classes that labels are of; empty where there are none.
  virtual std::vector<std::string> classes() const { return {}; }

  /// Text to token ids and back; nothing for data without a tokenizer. encode throws Error naming a character it does not know.
  virtual std::optional<std::vector<std::int64_t>> encode(std::string const& text) const = 0;
  virtual std::optional<std::string> decode(std::vector<std::int64_t> const& tokens) const = 0;

  /// What decode and encode need; null: no tokenizer.
  virtual std::shared_ptr<Tokenizer const> tokenizer_handle() const { return nullptr; }
  /// The same of the part "source".
  virtual std::shared_ptr<Tokenizer const> source_tokenizer_handle() const { return tokenizer_handle(); }
  /// They as JSON text, to be kept with a trained model (see restore_tokenizer); empty: no tokenizer.
  std::string tokenizer() const;
  std::string source_tokenizer() const;

  /// What the held-out rows are made of, all of them; nothing where they are no text, or not all of one.
  virtual std::optional<TextUnits> held_out_units() const { return std::nullopt; }

  /// The files that the data come from, as they were read: what makes these data the ones they are.
  virtual ReadFiles files() const { return {}; }

  /// For summary.json: the hashes of the files and what is known of the data ("sha256", "tokens", "ngram": {"1": nats, …},
  /// "entropy": nats per token), all in nats per token of the validation split.
  virtual nlohmann::json describe() const = 0;
  /// The least loss that any model can expect on the first `rows` rows of the validation data, of `context` tokens, in nats per token,
  /// where it is known: −log P of their tokens under the distribution that they were drawn from.
  virtual std::optional<double> optimum(std::int64_t rows, std::int64_t context) const {
    return static_cast<void>(rows), static_cast<void>(context), std::nullopt;
  }
  /// Reference losses in nats per token to show beside a model's validation loss: {"5-gram", 1.669}, {"entropy", 1.234}.
  virtual std::vector<std::pair<std::string, double>> reference_losses() const { return {}; }
  /// What simple rules reach on the held-out rows, in any metric: {"majority class", {{"accuracy", 0.501}}}.
  virtual std::vector<Baseline> baselines() const { return {}; }
};

}  // namespace heed
