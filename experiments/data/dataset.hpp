#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/random.hpp"
#include "experiments/data/files.hpp"
#include "nn/batch.hpp"

namespace heed {

struct Example;
class Tokenizer;

/// Groups of targets whose accuracy is reported separately (the part "groups" holds their numbers). A prediction is correct if the most
/// probable of the tokens that have a category is of the target's category.
struct TargetGroups {
  std::vector<std::string> names;
  std::vector<Index> categories;  ///< by token; −1: none
};

/// Size of the held-out text. Words are separated by blanks, and the end of a line counts as one, as in the usual counts of WikiText.
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

/// What is known of data once they are open. A view copies the facts of the data that it shows, and alters them.
struct DataFacts {
  Signature signature;                                      ///< the parts of every batch
  std::shared_ptr<Tokenizer const> tokenizer;               ///< of "inputs" and "targets"; null: none
  std::shared_ptr<Tokenizer const> source_tokenizer;        ///< of the part "source"; of data without that part, the same
  TargetGroups groups;                                      ///< of the targets in validation batches
  std::vector<std::string> classes;                         ///< names of the labels' classes; empty: none
  std::vector<std::string> remarks;                         ///< on what may be surprising, and the classes with their counts
  std::vector<ExampleSize> training_sizes, held_out_sizes;  ///< of labelled examples, without special tokens
  std::optional<TextUnits> held_out_units;                  ///< none: the held-out data are not text, or not all of one text
  ReadFiles files;                                          ///< that the data were read from, which identify them
  nlohmann::json description;                               ///< for summary.json: hashes of files, numbers of tokens, "entropy"
  std::vector<Baseline> baselines;                          ///< {"majority class", {{"accuracy", 0.501}}}

  /// Losses of n-gram models, n = 1, 2, …, in nats per token of the validation split. Counted on first use, because counting takes time.
  std::shared_future<std::vector<double>> ngrams;
  /// Other losses to compare a model's with, in nats per token: {"entropy", 1.234}.
  std::vector<std::pair<std::string, double>> bounds;
  /// Whether targets are the data's own, so that a model's loss compares with n-grams and bounds.
  bool comparable = true;
  /// The lowest expected loss of any model on the first `rows` validation sequences of `context` tokens, in nats per token: −log P of
  /// their tokens under the distribution that they were drawn from. Null: unknown.
  std::function<double(Index rows, Index context)> optimum;
  /// The mean losses of known predictors on the same sequences, in nats per token: {"order 1", 0.88}. Null: there are none.
  std::function<std::vector<std::pair<std::string, double>>(Index rows, Index context)> known_losses;
  /// A sentence on the labelled examples that do not fit into `context` tokens; nothing if all fit.
  std::function<std::optional<std::string>(Index context)> cut_short = [](Index) { return std::nullopt; };
};

/// A held-out sequence before it became tokens, as far as it is known.
struct Original {
  std::optional<std::string> reference = {};    ///< its target as written, including words that the vocabulary lacks
  std::optional<std::vector<Link>> links = {};  ///< its alignment
  Example const* example = nullptr;             ///< the labelled example
  std::vector<std::size_t> starts = {};         ///< where tokens of its passage begin, in bytes, and where the last one ends
};

/// Rows [first, first + count).
struct RowRange {
  Index first, count;
};

/// The rows of batch number `index` of a split of `rows` rows, `batch` in each batch, fewer in the last. Throws Error if there is none.
RowRange rows_of_batch(std::string const& split, Index index, Index batch, Index rows);

/// A source of batches: facts, and four calls. A batch is a pure function of the seed and its number: resuming needs no state, arms of an
/// ablation see the same data, and validation data are the same for every seed and arm.
class Dataset {
 public:
  explicit Dataset(DataFacts facts = {}) : facts_(std::move(facts)) {}
  Dataset(Dataset const&) = delete;  // facts may refer to the data
  Dataset& operator=(Dataset const&) = delete;
  virtual ~Dataset() = default;

  DataFacts const& facts() const { return facts_; }
  Signature const& signature() const { return facts_.signature; }
  /// Number of token ids, at least 1.
  Index vocabulary() const { return signature()["inputs"].classes; }

  /// Micro-batch number `index` of training: `batch` sequences of `context` tokens. Throws FileError if there is no such batch.
  virtual Batch training(Index index, Index batch, Index context) const = 0;
  /// Number of validation batches (0: none).
  virtual Index validation_batches(Index batch, Index context) const = 0;
  /// Validation batch number `index`: windows without overlap, in order; the last may be shorter (padded with targets −1).
  virtual Batch validation(Index index, Index batch, Index context) const = 0;
  /// Held-out sequence number `row` before it became tokens; empty if there is no such row.
  virtual Original original(Index /*row*/) const { return {}; }

  /// The tokenizers as JSON text, to be kept with a trained model (see restore_tokenizer); empty: no tokenizer.
  std::string tokenizer() const;
  std::string source_tokenizer() const;
  /// The description with the n-grams' losses, "ngram": {"1": nats, …}.
  nlohmann::json describe() const;
  /// Losses to compare a model's loss on the first `rows` validation sequences of `context` tokens with, in nats per token: {"5-gram",
  /// 1.669}, {"entropy", 1.234}. Those of known predictors are on these sequences, others on all of the validation split.
  std::vector<std::pair<std::string, double>> reference_losses(Index rows, Index context) const;

 protected:
  DataFacts facts_;
};

/// Data whose rows are drawn one by one: training row r, counted over all batches, from Stream(seed, "data").child(r), held-out row r from
/// Stream(0, NAME).child(r) for any seed, where NAME is `held_out_stream`.
class DrawnDataset : public Dataset {
 public:
  DrawnDataset(std::uint64_t seed, std::string held_out_stream, Index held_out)
      : seed_(seed), held_out_stream_(std::move(held_out_stream)), held_out_(held_out) {}

  Batch training(Index index, Index batch, Index context) const final {
    return rows(Stream(seed_, "data"), {index * batch, batch}, context, false);
  }
  Index validation_batches(Index batch, Index context) const final { return (held_out_rows(context) + batch - 1) / batch; }
  Batch validation(Index index, Index batch, Index context) const final {
    return rows(held_out_draws(), rows_of_batch("validation", index, batch, held_out_rows(context)), context, true);
  }

 protected:
  /// These rows of training or held-out data, of at most `context` tokens.
  virtual Batch rows(Stream const& draws, RowRange const& range, Index context, bool held_out) const = 0;
  /// Number of rows of held-out data; each is a draw, unless overridden.
  virtual Index held_out_rows(Index /*context*/) const { return held_out_; }
  std::uint64_t seed() const { return seed_; }
  /// Number of held-out draws.
  Index held_out() const { return held_out_; }
  Stream held_out_draws() const { return Stream(0, held_out_stream_); }

 private:
  std::uint64_t seed_;
  std::string held_out_stream_;
  Index held_out_;
};

}  // namespace heed
