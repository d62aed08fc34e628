#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/model.hpp"

namespace heed {

/// A text model's outputs for sequences, the inputs of a head.
struct Streams {
  std::vector<Tensor> layers;  ///< [R, T, width] each: of the embeddings and of every block if the head reads all, and the last output
  Tensor lengths = {};         ///< tokens of each sequence, [R]; undefined: all T

  Tensor const& last() const { return layers.back(); }
};

/// The views that provide the batch parts for a model with a head.
struct HeadViews {
  std::string targets;                      ///< for language modelling: "next_token", "masked_tokens"
  std::string examples;                     ///< for labelled examples, with the model's special tokens: "delimited", "segmented"
  bool segments = false;                    ///< whether the model reads segment ids
  Settings const* view_settings = nullptr;  ///< settings of the view of targets; null: it has none
};

/// A head's constructor arguments.
struct HeadParts {
  Scope scope;            ///< "heads"
  Index width;            ///< of the streams
  Index layers;           ///< their number, including the embeddings
  bool summary_is_first;  ///< the token that represents a sequence: [CLS] in front, or the last, which sees all before it
  Signature const& data;
  Tensor word_weight = {}, word_bias = {};  ///< of the output layer over the vocabulary, [V, width] and [V]; undefined if not needed
};

/// The output part of a model: terms of the loss, and their predictions; a language model's, or one for labelled examples.
class OutputHead {
 public:
  explicit OutputHead(HeadParts const& parts) : word_weight_(parts.word_weight), word_bias_(parts.word_bias) {}
  virtual ~OutputHead() = default;
  virtual std::vector<Term> terms() const = 0;
  /// Whether it reads the outputs of all layers.
  virtual bool reads_layers() const { return false; }
  virtual std::vector<Prediction> predictions(Streams const& streams, Batch const& batch, Pass const& pass) const = 0;

 protected:
  /// Logits over the vocabulary.
  LinearHead words(Tensor const& x) const { return {x, word_weight_, word_bias_}; }

 private:
  Tensor word_weight_, word_bias_;
};

/// `head: {kind: classification, …}` of models of text.
struct HeadSettings : Settings {
  /// The parts that a batch must have.
  virtual std::vector<InputPart> reads(HeadViews const& views) const = 0;
  /// Whether it predicts tokens, which needs logits over the vocabulary.
  virtual bool predicts_tokens() const { return true; }
  /// Whether the model can continue a text with it.
  virtual bool continues() const { return false; }
  virtual std::unique_ptr<OutputHead> make(HeadParts const& parts) const = 0;
};

/// The part of a sequence that a position sees: the tokens up to it, or all. A head may require one of them.
enum class SeesText { past, all };

/// A kind of head, declared beside its definition.
struct HeadKind {
  std::string name, help;
  std::function<std::shared_ptr<HeadSettings>()> settings;
  std::optional<SeesText> only = {};
};
/// Settings S that make a head H of themselves.
template <class H, class S>
struct SettingsOfHead : S {
  std::unique_ptr<OutputHead> make(HeadParts const& parts) const override { return std::make_unique<H>(parts, *this); }
};
/// The kind of a head H with settings S.
template <class H, class S>
HeadKind head_of(std::string name, std::string help, std::optional<SeesText> only = {}) {
  return {std::move(name), std::move(help), [] { return std::make_shared<SettingsOfHead<H, S>>(); }, only};
}
/// The kinds of head for a model that sees this; the language model is the default.
Choice head_choice(SeesText sees);
/// The chosen head's settings. Throws Error if none is chosen.
HeadSettings const& head_settings(Choice const& choice);

/// The vocabulary of labels that are indices of options rather than classes (PartSpec::vocabulary).
inline constexpr char const* option_labels = "options";
bool has_options(Signature const& data);
/// Throws Error if the labels are not indices of options.
void check_options(Signature const& data);

/// The sequences [R, T] of inputs: [B, T] unchanged, [B, K, T] flattened.
Tensor sequences_of(Tensor const& inputs);
/// Their lengths [R], from the part "lengths" [B] or [B, K]; undefined if there is none.
Tensor lengths_of_sequences(Batch const& batch);
/// The mean of x [R, T, width] over the positions of each sequence, padding left out (lengths undefined: there is none): [R, width].
Tensor mean_of_tokens(Tensor const& x, Tensor const& lengths);
/// The rows of x [R, T, width] at the first position of each sequence, or at its last (lengths undefined: T − 1): [R, width].
Tensor at_summary(Tensor const& x, Tensor const& lengths, bool first);

/// The log-probabilities of options' tokens under a language model, [rows · K]: for each sequence of x [rows · K, T, width] the mean or sum
/// over the positions whose targets [rows, K, T] are not −1. Logits are computed for one sequence at a time.
Tensor option_scores(LinearHead const& words, Tensor const& targets, bool mean);

}  // namespace heed
