#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/data/view.hpp"

namespace heed {

/// One sequence that is put together of special tokens and pieces of an example.
struct Sequence {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> segments;  ///< the number of the text that each is of
  std::vector<std::int64_t> passage;   ///< 1: of the passage; 2: where "no answer" stands; 0: neither
  std::int64_t begin = -1;             ///< the sequence's place of the passage's first token, of those that are kept
  std::int64_t skipped = 0;            ///< tokens of the passage before it

  void add(std::int64_t token, std::int64_t segment = 0);
  void add(std::span<std::int64_t const> piece, std::int64_t segment);
};

/// Where an answer begins and ends among the tokens of a passage, both included; −1: there is none.
struct AnswerSpan {
  std::int64_t begin = -1, end = -1;
};

/// A way of showing labelled examples to a model: each is a sequence, or several (options, orders), of special tokens and its texts.
class SequenceView : public View {
 public:
  /// `marks`: the special tokens' names, which are added to the vocabulary in this order.
  SequenceView(std::unique_ptr<Dataset> plain, std::string name, std::vector<std::string> marks);

  Signature signature() const override;
  Batch training(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  Batch validation(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  std::optional<std::string> cut_short(std::int64_t context) const override;
  // What is known of the next token says nothing of labels.
  std::optional<double> optimum(std::int64_t, std::int64_t) const override { return std::nullopt; }

 protected:
  /// The texts of an example that go into one sequence, cut to fit.
  struct ExamplePieces {
    std::span<std::int64_t const> first, second, option;
  };
  virtual Sequence put_together(ExamplePieces const& pieces) const = 0;
  /// How many special tokens a sequence of so many texts has.
  virtual std::int64_t special(std::int64_t texts) const = 0;
  /// What else the batch has beside inputs, lengths, label, and passage and span; of the sequences in their order.
  virtual void complete(Batch& batch, std::vector<Sequence> const& sequences) const = 0;
  virtual void complete(Signature& given) const = 0;
  /// Whether texts that are too long lose their beginnings, not their ends.
  virtual bool cuts_beginnings() const { return false; }
  /// Whether a pair that has no order is shown in both.
  virtual bool both_orders() const { return false; }
  /// The number of a special token.
  std::int64_t mark(std::size_t number) const;

 private:
  std::int64_t sequences_of_row() const;
  Sequence sequence_of(Batch const& plain, std::int64_t row, std::int64_t number, std::int64_t context, AnswerSpan const& kept) const;
  Batch shown(Batch const& plain, std::int64_t context, bool keeps_answer) const;

  std::string name_;
  std::vector<std::string> marks_;
  Signature given_;  ///< by the plain data
};

/// [R, T] of one list of each sequence, `filler` behind its end; viewed as [B, K, T] where a row has K > 1.
Tensor rows_of(std::vector<Sequence> const& sequences, std::vector<std::int64_t> Sequence::*list, std::int64_t filler,
               std::int64_t per_row);

}  // namespace heed
