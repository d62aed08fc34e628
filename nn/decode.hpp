#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "autograd/random.hpp"
#include "autograd/rounded_weights.hpp"
#include "nn/model.hpp"

namespace heed {

struct SamplingSettings;

/// Targets that are read token by token, a row for each source, or texts that are continued: what was read is kept, so that each token is
/// read once. The model must outlive it, unchanged.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// Reads one token more of every row, int64 [R], or several, [R, n]; the scores of those after the last, [R, V]. A model that continues
  /// texts has as many rows as the first tokens that it is given.
  virtual Tensor scores(Tensor const& tokens) = 0;
  /// Forgets the tokens that were read; what it writes of stays.
  virtual void restart() = 0;
  /// Goes on with these rows alone, in this order; a row may be named more than once.
  virtual void keep(std::span<std::int64_t const> rows) = 0;
};

/// What models share that decode step by step: nothing is recorded, weights are rounded once, hard attention draws by the rows' numbers.
class StepwiseDecoding : public Decoding {
 public:
  /// Draws as `pass` says.
  explicit StepwiseDecoding(Pass const& pass);
  Tensor scores(Tensor const& tokens) final;
  void keep(std::span<std::int64_t const> rows) final;

 protected:
  /// Tokens [R, n] → the scores of those after the last, [R, V].
  virtual Tensor read(Tensor const& tokens) = 0;
  /// Goes on with these rows of what was read.
  virtual void keep_read(std::span<std::int64_t const> rows) = 0;
  /// Likewise of what is written of; not called where each row goes on from what it had.
  virtual void keep_given(std::span<std::int64_t const> rows) { static_cast<void>(rows); }
  /// As many rows as this are decoded. Where nobody says, it is the first tokens' number.
  void begin(std::int64_t rows);

  Pass pass_;

 private:
  std::vector<std::int64_t> origins_;  // the first row that each row goes on from
  RoundedWeights weights_;
};

/// The last place of every row: x [R, n, width] → [R, width].
Tensor last_place(Tensor const& x);

/// The most tokens that a target may have: of every row as many, or of each its own number. Less than one: none.
class LengthLimit {
 public:
  LengthLimit(std::int64_t of_all) : of_all_(of_all) {}
  LengthLimit(std::vector<std::int64_t> of_each) : of_each_(std::move(of_each)) {}

  std::int64_t operator[](std::size_t row) const { return of_each_ ? (*of_each_)[row] : of_all_; }
  bool fits(std::size_t rows) const { return !of_each_ || of_each_->size() == rows; }

 private:
  std::int64_t of_all_ = 0;
  std::optional<std::vector<std::int64_t>> of_each_;
};

/// As many tokens as a target may have unless it is said otherwise: 50 more than its source (Vaswani et al. 2017, section 6.1), and not
/// more than the model's context. Of what has no source: the context.
LengthLimit longest_targets(Batch const& given, Model const& model);

/// What a row was decoded to.
struct Decoded {
  std::vector<std::int64_t> tokens;  ///< without the one that begins it and the one that ends it
  double score = 0;                  ///< the logarithm of its probability, that of its end included
  bool ended = false;                ///< by its end, not for want of room
};

struct BeamSettings {
  std::int64_t width = 4;       ///< hypotheses of a row
  double length_penalty = 0.6;  ///< α; 0: the most probable hypothesis is the best, and long ones are less probable
};

/// What a hypothesis's score is divided by: ((5 + length) / 6)^α (Wu et al. 2016, equation 14), its end counted as a token.
double length_penalty(std::int64_t length, double alpha);

/// Beam search (Sutskever et al. 2014, section 3.2), of all rows of the batch's source at once. A hypothesis begins with the token `begin`,
/// which is not told. At every step, of all continuations of a row's hypotheses by one token the `width` most probable stay, of equals
/// those whose tokens are lower; the ones that end, by the token `end`, leave. A row is done when none are left, or none can become better
/// than its `width` best that ended: the probability only falls, and the penalty is largest at `most` tokens. Hypotheses that have `most`
/// tokens count as they are.
///
/// For every row its hypotheses, at most `width`, the best first: of the largest score / length_penalty (Wu et al. 2016), of equals the one
/// whose tokens come first in the dictionary. They do not depend on the batch's other rows. Of `pass` there count only `choosing` and
/// `sequences`. Records nothing. Throws Error for a model that decodes no source, or settings out of range; NonFinite naming a row if a
/// score is NaN or the largest is infinite.
std::vector<std::vector<Decoded>> beam(Model const& model, Batch const& given, std::int64_t begin, std::int64_t end,
                                       LengthLimit const& most, BeamSettings const& settings, Pass const& pass = {});

/// The most probable token at every step: beam() of width 1.
std::vector<Decoded> greedy(Model const& model, Batch const& given, std::int64_t begin, std::int64_t end, LengthLimit const& most,
                            Pass const& pass = {});

/// Tokens drawn as generate() draws them, until `end` or for `most` tokens: the i-th of a row with draw i of the stream's child that
/// Pass::sequence() numbers. Scores are of the model's own probabilities, before temperature and cuts. Throws as beam() does.
std::vector<Decoded> sample(Model const& model, Batch const& given, std::int64_t begin, std::int64_t end, LengthLimit const& most,
                            SamplingSettings const& settings, Stream const& stream, Pass const& pass = {});

}  // namespace heed
