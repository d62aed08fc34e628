#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/model.hpp"

namespace heed {

/// What a model of text has made of sequences, for a head to read.
struct Streams {
  std::vector<Tensor> layers;  ///< [R, T, width] each: of the embeddings and of every block if the head reads all, and what leaves the last
  Tensor lengths = {};         ///< tokens of each sequence, [R]; undefined: all T

  Tensor const& last() const { return layers.back(); }
};

/// How the parts of a batch come to a model that has a head: the views that make them.
struct HeadViews {
  std::string targets;            ///< of language modelling: "next_token", "masked_tokens"
  std::string examples;           ///< of labelled examples, with its special tokens: "delimited", "segmented"
  bool segments = false;          ///< whether the model reads which of two texts a token is of
  Settings const* how = nullptr;  ///< settings of the view of targets; null: it has none
};

/// What a head is made for.
struct HeadParts {
  Scope scope;            ///< "heads"
  std::int64_t width;     ///< of the streams
  std::int64_t layers;    ///< how many there are, the embeddings among them
  bool summary_is_first;  ///< the token whose place stands for a sequence: [CLS] in front, or the last, which sees all before it
  Signature const& data;
  Tensor word_weight = {}, word_bias = {};  ///< of the head over the vocabulary, [V, width] and [V]; undefined where none is asked for
};

/// What a model says of its sequences: terms of the loss, and their predictions. The language-model head is one kind, heads for labelled
/// examples are others.
class OutputHead {
 public:
  virtual ~OutputHead() = default;
  virtual std::vector<Term> terms() const = 0;
  /// Whether it reads the streams of all layers.
  virtual bool reads_layers() const { return false; }
  virtual std::vector<Prediction> predictions(Streams const& streams, Batch const& batch, Pass const& pass) const = 0;
};

/// `head: {kind: classification, …}` of models of text.
struct HeadSettings : Settings {
  /// What a batch must hold.
  virtual std::vector<Need> reads(HeadViews const& views) const = 0;
  /// Whether it predicts tokens, so that the model has logits over the vocabulary.
  virtual bool predicts_tokens() const = 0;
  /// Whether the model continues a text with it.
  virtual bool continues() const { return false; }
  virtual std::unique_ptr<OutputHead> make(HeadParts const& parts) const = 0;
};

/// What a model sees of a sequence at a place: the tokens up to there, or all. A head may be for one of them alone.
enum class SeesText { past, all };

/// A kind of head, declared beside its definition.
struct HeadKind {
  std::string name, help;
  std::function<std::shared_ptr<HeadSettings>()> settings;
  std::optional<SeesText> only = {};
};
/// All kinds that a model can have which sees so much; the language model is chosen.
Choice head_choice(SeesText sees);
/// Throws Error if none is chosen.
HeadSettings const& head_settings(Choice const& choice);

/// The vocabulary of labels that are numbers of options, not classes (PartSpec::vocabulary).
inline constexpr char const* option_labels = "options";
bool has_options(Signature const& data);
/// Throws Error if the labels are not the numbers of options.
void check_options(Signature const& data);

/// The sequences [R, T] of inputs: [B, T] as they are, and each of [B, K, T].
Tensor sequences_of(Tensor const& inputs);
/// Their lengths [R], from the part "lengths" [B] or [B, K]; undefined if there is none.
Tensor lengths_of_sequences(Batch const& batch);

/// The log-probabilities of options' tokens under a language model, [rows · K]: of each sequence of x [rows · K, T, width] the mean, or the
/// sum, over the places whose targets [rows, K, T] are not −1. Logits are held of one sequence at a time.
Tensor option_scores(LinearHead const& words, Tensor const& targets, bool mean);

}  // namespace heed
