#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/heads/head.hpp"

namespace heed {

/// A layer over the features of all positions.
class FeatureLayer {
 public:
  virtual ~FeatureLayer() = default;
  /// The width of its outputs.
  virtual Index width() const = 0;
  /// Per position, x [R, T, in] → [R, T, width()]; positions beyond the lengths [R] (undefined: all T) are ignored.
  virtual Tensor per_token(Tensor const& x, Tensor const& lengths, Pass const& pass) const = 0;
  /// Per sequence, [R, width()].
  virtual Tensor summary(Tensor const& x, Tensor const& lengths, Pass const& pass) const = 0;
};

/// The layer for `recurrent: WIDTH` over features of width `in`, declared by the recurrent models; the key exists only with them.
using RecurrentFeatures = std::function<std::unique_ptr<FeatureLayer>(Scope const& scope, Index in, Index width)>;

/// Keys of heads for labelled examples.
struct TaskHeadSettings : HeadSettings {
  std::string features = "last";   ///< last, weighted (all layers, learned weights), embeddings
  std::string pool = "token";      ///< representation of a sequence: its summary token, or the mean
  std::optional<Index> recurrent;  ///< width of a bidirectional LSTM over the features; none: no LSTM
  double dropout = 0;
  double auxiliary = 0;  ///< λ, the weight of the language-model loss on the examples; 0: no such loss

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  std::vector<InputPart> reads(HeadViews const& views) const override { return examples(views, {{"label"}}); }
  bool predicts_tokens() const override { return auxiliary > 0; }

 protected:
  /// The parts for labelled examples, with targets if it predicts tokens, and their labels.
  std::vector<InputPart> examples(HeadViews const& views, std::vector<InputPart> const& labels) const;
};

/// A head for labelled examples: a term of the task, and optionally the language model's, L3 = L2 + λ L1 (Radford et al. 2018, eq. 5). It
/// reads these features of the streams:
///
///   last        the output of the last layer
///   weighted    γ Σ_l softmax(s)_l · norm(h_l) over the embeddings and all layers, s [layers] and γ learned (Peters et al. 2018, eq. 1)
///   embeddings  the input of the first layer: static word vectors, if the encoder is frozen
///
/// With `recurrent`, a bidirectional LSTM follows. With frozen encoder parameters (train.optimizer.groups) this is the feature-based use of
/// a pre-trained model, otherwise fine-tuning.
class TaskHead : public OutputHead {
 public:
  /// `kind`: its name in the parameters, heads.KIND. Throws Error for an auxiliary language-model loss of a model that is not causal.
  TaskHead(HeadParts const& parts, TaskHeadSettings const& settings, std::string const& kind, Term task);

  std::vector<Term> terms() const final;
  bool reads_layers() const final { return features_ != "last"; }
  std::vector<Prediction> predictions(Streams const& streams, Batch const& batch, Pass const& pass) const final;

 protected:
  /// Logits for the task's targets.
  virtual LinearHead logits(Streams const& streams, Batch const& batch, Pass const& pass) const = 0;
  /// The width of the features.
  Index width() const { return width_; }
  /// The features per position, [R, T, width()].
  Tensor per_token(Streams const& streams, Pass const& pass) const;
  /// Per sequence, [R, width()]: its summary token, the mean over its positions, or the last states of an LSTM's two directions.
  Tensor summary(Streams const& streams, Pass const& pass) const;

 private:
  Tensor read(Streams const& streams) const;
  Tensor of_positions(Streams const& streams, Pass const& pass) const;

  Term task_;
  double auxiliary_, dropout_;
  std::string features_, pool_, path_;
  bool first_;
  Index width_;
  Tensor mix_, factor_, ones_, zeros_;   ///< s, γ, and weight and bias of norms without parameters
  std::unique_ptr<FeatureLayer> cells_;  ///< null: no layer
};

}  // namespace heed
