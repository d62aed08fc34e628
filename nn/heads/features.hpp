#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

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

/// Keys shared by heads for labelled examples: the features that they read.
struct FeatureSettings {
  std::string features = "last";   ///< last, weighted (all layers, learned weights), embeddings
  std::string pool = "token";      ///< representation of a sequence: its summary token, or the mean
  std::optional<Index> recurrent;  ///< width of a bidirectional LSTM over the features; none: no LSTM
  double dropout = 0;

  std::vector<Field> fields();
  std::optional<std::string> contradiction() const;
};

/// The features of a head from the streams:
///
///   last        the output of the last layer
///   weighted    γ Σ_l softmax(s)_l · norm(h_l) over the embeddings and all layers, s [layers] and γ learned (Peters et al. 2018, eq. 1)
///   embeddings  the input of the first layer: static word vectors, if the encoder is frozen
///
/// With `recurrent`, a bidirectional LSTM follows. With frozen encoder parameters (train.optimizer.groups) this is the feature-based use of
/// a pre-trained model, otherwise fine-tuning.
class Features {
 public:
  Features(HeadParts const& parts, FeatureSettings const& settings, std::string const& name);

  bool reads_layers() const { return settings_.features != "last"; }
  /// The width of per_token() and summary().
  Index width() const { return width_; }
  /// Per position, [R, T, width()].
  Tensor per_token(Streams const& streams, Pass const& pass) const;
  /// Per sequence, [R, width()]: its summary token, the mean over its positions, or the last states of an LSTM's two directions.
  Tensor summary(Streams const& streams, Pass const& pass) const;

 private:
  Tensor read(Streams const& streams) const;

  FeatureSettings settings_;
  std::string path_;
  bool first_;
  Index width_;
  Tensor mix_, factor_, ones_, zeros_;   ///< s, γ, and weight and bias of norms without parameters
  std::unique_ptr<FeatureLayer> cells_;  ///< null: no layer
};

/// The mean of x [R, T, width] over the positions of each sequence, padding left out (lengths undefined: there is none): [R, width].
Tensor mean_of_tokens(Tensor const& x, Tensor const& lengths);
/// The rows of x [R, T, width] at the first position of each sequence, or at its last (lengths undefined: T − 1): [R, width].
Tensor at_summary(Tensor const& x, Tensor const& lengths, bool first);

}  // namespace heed
