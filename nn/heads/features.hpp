#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "nn/heads/head.hpp"

namespace heed {

/// A layer over the features of all places.
class FeatureLayer {
 public:
  virtual ~FeatureLayer() = default;
  /// Of what it gives.
  virtual std::int64_t width() const = 0;
  /// Of every place, x [R, T, in] → [R, T, width()]; nothing counts behind the lengths [R] (undefined: all T).
  virtual Tensor places(Tensor const& x, Tensor const& lengths, Pass const& pass) const = 0;
  /// Of every sequence as a whole, [R, width()].
  virtual Tensor summary(Tensor const& x, Tensor const& lengths, Pass const& pass) const = 0;
};

/// What `recurrent: WIDTH` puts over features of width `in`. Recurrent models declare it; without them there is no such key.
using RecurrentFeatures = std::function<std::unique_ptr<FeatureLayer>(Scope const& scope, std::int64_t in, std::int64_t width)>;

/// What a head for labelled examples reads of the streams: the keys that such heads share.
struct FeatureSettings {
  std::string features = "last";          ///< last, weighted (all layers, learned weights), embeddings
  std::string pool = "token";             ///< what stands for a sequence: its summary token, or the mean of all
  std::optional<std::int64_t> recurrent;  ///< width of a bidirectional LSTM over them; none: they are read as they are
  double dropout = 0;

  std::vector<Field> fields();
  std::optional<std::string> contradiction() const;
};

/// The streams as features of a head:
///
///   last        what leaves the last layer
///   weighted    γ Σ_l softmax(s)_l · norm(h_l) over the embeddings and all layers, s [layers] and γ learned (Peters et al. 2018, eq. 1)
///   embeddings  what enters the first layer: of a static table of word vectors, if the encoder is frozen
///
/// and, where `recurrent` asks for it, the outputs of a bidirectional LSTM over them. With the encoder's parameters frozen
/// (train.optimizer.groups) that is the feature-based way of using a pre-trained model; else it is fine-tuned.
class Features {
 public:
  Features(HeadParts const& parts, FeatureSettings const& settings, std::string const& name);

  bool reads_layers() const { return settings_.features != "last"; }
  /// Of what places() and summary() give.
  std::int64_t width() const { return width_; }
  /// Of every place, [R, T, width()].
  Tensor places(Streams const& streams, Pass const& pass) const;
  /// Of every sequence, [R, width()]: of its summary token, the mean over its places, or an LSTM's last states of both directions.
  Tensor summary(Streams const& streams, Pass const& pass) const;

 private:
  Tensor read(Streams const& streams) const;

  FeatureSettings settings_;
  std::string path_;
  bool first_;
  std::int64_t width_;
  Tensor mix_, factor_, ones_, zeros_;   ///< s, γ, and the weight and bias of norms without parameters
  std::unique_ptr<FeatureLayer> cells_;  ///< null: the features are read as they are
};

/// The rows of x [R, T, width] at the first place of each sequence, or at its last (lengths undefined: T − 1): [R, width].
Tensor at_summary(Tensor const& x, Tensor const& lengths, bool first);

}  // namespace heed
