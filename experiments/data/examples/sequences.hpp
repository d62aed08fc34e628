#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/data/view.hpp"

namespace heed {

/// A sequence assembled from special tokens and pieces of an example.
struct Sequence {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> segments;  ///< per token: the number of its text
  std::vector<std::int64_t> passage;   ///< per token: 1 in the passage; 2 at the position that stands for "no answer"; else 0
  std::int64_t begin = -1;             ///< position of the first kept token of the passage
  std::int64_t skipped = 0;            ///< tokens of the passage before it

  void add(std::int64_t token, std::int64_t segment = 0);
  void add(std::span<std::int64_t const> piece, std::int64_t segment);
};

/// First and last token of an answer in a passage; −1: there is none.
struct AnswerSpan {
  std::int64_t begin = -1, end = -1;
};

/// A view of labelled examples: each is one sequence, or several (options, orders), of special tokens and its texts.
class SequenceView : public View {
 public:
  /// `marks`: names of the special tokens, which are appended to the vocabulary in this order.
  SequenceView(std::unique_ptr<Dataset> plain, std::string name, std::vector<std::string> marks);

  Signature signature() const override;
  Batch training(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  Batch validation(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  std::optional<std::string> cut_short(std::int64_t context) const override;
  // Bounds on next-token loss do not apply to labels.
  std::optional<double> optimum(std::int64_t, std::int64_t) const override { return std::nullopt; }

 protected:
  /// The texts of an example for one sequence, truncated to fit.
  struct ExamplePieces {
    std::span<std::int64_t const> first, second, option;
  };
  virtual Sequence put_together(ExamplePieces const& pieces) const = 0;
  /// Number of special tokens in a sequence of this many texts.
  virtual std::int64_t special(std::int64_t texts) const = 0;
  /// Adds parts other than inputs, lengths, label, passage and span; `sequences` in batch order.
  virtual void complete(Batch& batch, std::vector<Sequence> const& sequences) const = 0;
  virtual void complete(Signature& given) const = 0;
  /// Whether long texts are truncated at the beginning instead of the end.
  virtual bool cuts_beginnings() const { return false; }
  /// Whether a symmetric pair is shown in both orders.
  virtual bool both_orders() const { return false; }
  /// The id of a special token.
  std::int64_t mark(std::size_t number) const;

 private:
  std::int64_t sequences_of_row() const;
  /// How many held-out answers are not, or not whole, in the `context` tokens that a model reads.
  std::int64_t lost_answers(std::int64_t context) const;
  Sequence sequence_of(Batch const& plain, std::int64_t row, std::int64_t number, std::int64_t context, AnswerSpan const& kept) const;
  Batch shown(Batch const& plain, std::int64_t context, bool keeps_answer) const;

  std::string name_;
  std::vector<std::string> marks_;
  Signature given_;  ///< the plain data's
};

/// [R, T] from one list per sequence, padded with `filler`; shaped [B, K, T] if a row has K > 1 sequences.
Tensor rows_of(std::vector<Sequence> const& sequences, std::vector<std::int64_t> Sequence::*list, std::int64_t filler,
               std::int64_t per_row);

}  // namespace heed
