#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/data/view.hpp"

namespace heed {

/// A sequence assembled from special tokens and pieces of an example.
struct Sequence {
  std::vector<Index> tokens;
  std::vector<Index> segments;  ///< per token: the number of its text
  std::vector<Index> passage;   ///< per token: 1 in the passage; 2 at the position that stands for "no answer"; else 0
  Index begin = -1;             ///< position of the first kept token of the passage
  Index skipped = 0;            ///< tokens of the passage before it

  void add(Index token, Index segment = 0);
  void add(std::span<Index const> piece, Index segment);
};

/// First and last token of an answer in a passage; −1: there is none.
struct AnswerSpan {
  Index begin = -1, end = -1;
};

/// A view of labelled examples: each is one sequence, or several (options, orders), of special tokens and its texts.
class SequenceView : public View {
 public:
  /// `marks`: names of the special tokens, which are appended to the vocabulary in this order.
  SequenceView(std::unique_ptr<Dataset> plain, std::string name, std::vector<std::string> marks);

 protected:
  /// Says what the sequences are; called by the constructor of each kind of view.
  void declare();

  /// The texts of an example for one sequence, truncated to fit.
  struct ExamplePieces {
    std::span<Index const> first, second, option;
  };
  virtual Sequence put_together(ExamplePieces const& pieces) const = 0;
  /// Number of special tokens in a sequence of this many texts.
  virtual Index special(Index texts) const = 0;
  /// Adds parts other than inputs, lengths, label, passage and span; `sequences` in batch order.
  virtual void complete(Batch& batch, std::vector<Sequence> const& sequences) const = 0;
  /// Declares those parts: by default "targets", tokens like the inputs.
  virtual void complete(Signature& given) const;
  /// Whether long texts are truncated at the beginning instead of the end.
  virtual bool cuts_beginnings() const { return false; }
  /// Whether a symmetric pair is shown in both orders.
  virtual bool both_orders() const { return false; }
  /// The id of a special token.
  Index mark(std::size_t number) const;

 private:
  Signature const& given() const { return plain().signature(); }
  Index sequences_of_row() const;
  /// How many held-out answers are not, or not whole, in the `context` tokens that a model reads.
  Index lost_answers(Index context) const;
  Sequence sequence_of(Batch const& plain, Index row, Index number, Index context, AnswerSpan const& kept) const;
  Batch shown(Batch plain, ShownRows const& of) const override;
  std::optional<std::string> cut_short(Index context) const;

  std::string name_;
  std::vector<std::string> marks_;
};

/// [R, T] from one list per sequence, padded with `filler`; [B, K, T] if the B rows have K > 1 sequences each.
Tensor rows_of(std::vector<Sequence> const& sequences, std::vector<Index> Sequence::*list, Index filler, Index rows);

}  // namespace heed
