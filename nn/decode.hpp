#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/graph.hpp"
#include "autograd/ops/rounded_weights.hpp"
#include "autograd/random.hpp"
#include "nn/model.hpp"

namespace heed {

/// Token-by-token decoding, of a target for each source or of continued texts. What was read is kept, so that each token is read once. The
/// model must outlive it, unchanged.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// Reads one token, int64 [R], or several, [R, n], for every row; returns the scores after the last, [R, V]. For a model that continues
  /// texts, the first call determines R.
  virtual Tensor scores(Tensor const& tokens) = 0;
  /// Forgets the tokens read; the source stays.
  virtual void restart() = 0;
  /// Continues with these rows only, in this order; a row may be repeated.
  virtual void keep(std::span<Index const> rows) = 0;
};

/// Base of stepwise decoders: records nothing, rounds weights once, and numbers rows for hard attention's draws.
class StepwiseDecoding : public Decoding {
 public:
  /// Draws as `pass` specifies.
  explicit StepwiseDecoding(Pass const& pass);
  Tensor scores(Tensor const& tokens) final;
  void keep(std::span<Index const> rows) final;

 protected:
  /// Tokens [R, n] → scores after the last, [R, V].
  virtual Tensor read(Tensor const& tokens) = 0;
  /// Continues with these rows of what was read.
  virtual void keep_read(std::span<Index const> rows) = 0;
  /// Continues with these rows of the source; not called if no row changes.
  virtual void keep_given(std::span<Index const> rows) { static_cast<void>(rows); }
  /// Sets the number of rows; otherwise the first tokens determine it.
  void begin(Index rows);

  Pass pass_;

 private:
  std::vector<Index> origins_;  // per row, the original row that it continues
  RoundedWeights weights_;
};

/// Targets of sources that a model of kind M encodes once: given = encode(batch, pass). What was read is in its state, at first
/// begin(given); next_scores(tokens [R, n], given, state, pass) reads on. Given and state have a keep(rows), as Decoding.
template <class M>
class SourceDecoding : public StepwiseDecoding {
 public:
  SourceDecoding(M const& model, Batch const& batch, Pass const& pass)
      : StepwiseDecoding(pass), model_(model), given_(model.encode(batch, pass_)) {
    begin(batch.rows());
    restart();
    if constexpr (is_cache) pass_.decoding.cache = &state_;
  }
  void restart() override { state_ = model_.begin(given_); }

 private:
  using Given = decltype(std::declval<M const&>().encode(std::declval<Batch const&>(), std::declval<Pass const&>()));
  using State = decltype(std::declval<M const&>().begin(std::declval<Given const&>()));
  static constexpr bool is_cache = std::is_same_v<State, KeyValueCache>;

  Tensor read(Tensor const& tokens) override { return model_.next_scores(tokens, given_, state_, pass_); }
  void keep_read(std::span<Index const> rows) override { state_.keep(rows); }
  void keep_given(std::span<Index const> rows) override {
    given_.keep(rows);
    if constexpr (is_cache) state_.keep_memory(rows);
  }

  M const& model_;
  Given given_;
  State state_;
};

/// The decoding of a batch that has this part, the source; null without it.
template <class M>
std::unique_ptr<Decoding> decoding_of(M const& model, Batch const& batch, Pass const& pass, std::string_view source) {
  NoGrad const quiet;
  return batch.has(source) ? std::make_unique<SourceDecoding<M>>(model, batch, pass) : nullptr;
}

/// The last position of every row: x [R, n, width] → [R, width].
Tensor last_position(Tensor const& x);

/// The most tokens of a target: one limit for all rows, or one per row. Less than one: no tokens.
class LengthLimit {
 public:
  LengthLimit(Index of_all) : of_all_(of_all) {}
  LengthLimit(std::vector<Index> of_each) : of_each_(std::move(of_each)) {}

  Index operator[](std::size_t row) const { return of_each_ ? (*of_each_)[row] : of_all_; }
  bool fits(std::size_t rows) const { return !of_each_ || of_each_->size() == rows; }

 private:
  Index of_all_ = 0;
  std::optional<std::vector<Index>> of_each_;
};

/// The default limit: 50 tokens more than the source (Vaswani et al. 2017, section 6.1), at most the context; without a source the context.
LengthLimit longest_targets(Batch const& given, Model const& model);

/// A decoded target.
struct Decoded {
  std::vector<Index> tokens;  ///< without the begin and end tokens
  double score = 0;           ///< log-probability, including the end token
  bool ended = false;         ///< whether it ended by the end token rather than by the limit
};

struct BeamSettings {
  Index width = 4;              ///< number of hypotheses per row
  double length_penalty = 0.6;  ///< α; 0: none, which favours short hypotheses
};

/// The divisor of a hypothesis's score: ((5 + length) / 6)^α (Wu et al. 2016, equation 14), with the end counted as a token.
double length_penalty(Index length, double alpha);

/// Beam search (Sutskever et al. 2014, section 3.2) for all sources of the batch at once. Hypotheses begin with the token `begin`, which is
/// not returned. At every step the `width` most probable continuations of a row's hypotheses by one token are kept (of ties, those with the
/// lower token); those that end with the token `end` are finished. A row is done when none is left or none can surpass its `width` best
/// finished ones, since probabilities only fall and the penalty is largest at the limit. Hypotheses as long as their limit count as
/// finished.
///
/// Returns for every row at most `width` hypotheses, best first: by score / length_penalty (Wu et al. 2016), ties in lexicographic order of
/// tokens. The result does not depend on the other rows. Of `pass` only pass.decoding.choosing and .sequences are used. Records nothing.
/// Throws Error for a model that decodes no source, or settings out of range; NonFinite naming a row if a score is NaN or the largest is
/// infinite.
std::vector<std::vector<Decoded>> beam(Model const& model, Batch const& given, Index begin, Index end, LengthLimit const& limits,
                                       BeamSettings const& settings, Pass const& pass = {});

/// The most probable token at every step: beam() of width 1.
std::vector<Decoded> greedy(Model const& model, Batch const& given, Index begin, Index end, LengthLimit const& limits,
                            Pass const& pass = {});

/// How a token is drawn from scores.
struct SamplingSettings {
  double temperature = 1;  ///< divides the scores; 0: greedy
  Index top_k = 0;         ///< only the k most probable (Fan et al. 2018); 0: all
  double top_p = 1;        ///< of those, only the smallest set with this share of their probability (nucleus; Holtzman et al. 2020)
  Index tokens = 0;        ///< only tokens below this one: the others have rows of embeddings, but no text; 0: all
};

/// A token and its probability.
struct TokenCandidate {
  Index token;
  double probability;
};

/// The tokens that can be drawn, most probable first (ties by the lower id), with probabilities that sum to one: softmax(scores /
/// temperature) in float64, cut by top_k, then by top_p. Throws Error for settings out of range, NonFinite if a score is NaN or the largest
/// is infinite.
std::vector<TokenCandidate> candidates(std::span<double const> scores, SamplingSettings const& settings);

/// The candidate at which the running sum of the probabilities exceeds u in [0, 1).
Index draw_token(std::vector<TokenCandidate> const& candidates, double u);

/// Draws tokens as generate() does, until `end` or the limit: the i-th token of a row uses draw i of the child of the stream
/// numbered by Pass::sequence(). Scores are the model's own log-probabilities, before temperature and cuts. Throws as beam() does.
std::vector<Decoded> sample(Model const& model, Batch const& given, Index begin, Index end, LengthLimit const& limits,
                            SamplingSettings const& settings, Stream const& stream, Pass const& pass = {});

/// Reads tokens one by one, each once: keeps the keys and values of earlier ones and, where products are made in bfloat16, the rounded
/// weights.
///
/// Beyond the model's context, only the last tokens are seen. If positions extend beyond the context (no limit()), the window may exceed it
/// by an eighth, so that the cache, which must be rebuilt when its first token moves, is rebuilt only once per context/8 tokens; with a
/// limit (learned positions) the window is exactly the last `context` tokens, rebuilt for every token. The window depends on the number of
/// tokens read alone, not on how many were read at once.
class Decoder {
 public:
  /// The model must outlive it, unchanged. Throws Error for a model that does not generate text step by step.
  explicit Decoder(Model const& model);

  /// Reads at least one token; returns the scores of the next, [V]. Throws Error naming a token outside the vocabulary.
  Tensor read(std::span<Index const> tokens);

  /// The number of tokens in the window: at least `context` if that many were read.
  Index seen() const { return static_cast<Index>(tokens_.size()) - first_; }

 private:
  Index first_seen() const;

  Model const& model_;
  Index slack_;                // positions beyond the context
  std::vector<Index> tokens_;  // all tokens read
  Index first_ = 0;            // index of the first token in the window
  std::unique_ptr<Decoding> decoding_;
};

/// Continues a prompt by up to `count` tokens, the i-th drawn with draw i of the stream; calls `emit` with each, and stops when it returns
/// false. Records nothing. Throws Error for an empty prompt or a token outside the vocabulary.
void generate(Model const& model, std::span<Index const> prompt, Index count, SamplingSettings const& settings, Stream const& stream,
              std::function<bool(Index)> const& emit);

}  // namespace heed
