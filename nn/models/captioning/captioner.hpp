#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "nn/layers.hpp"
#include "nn/models/recurrent/recurrent_settings.hpp"

namespace heed {

/// `model: {kind: captioner, …}`, whose attention is by default additive and in Bahdanau's style, as in Xu et al. 2015.
struct CaptionerSettings : RecurrentDecoderSettings {
  Index convolutions = 3;
  Index channels = 64;
  bool gate = true;
  double doubly_stochastic = 0;

  CaptionerSettings() {
    embedding = 32;
    context = 16;
    attention.from_word("bahdanau");
  }
  /// Output channels of convolution `layer`: the last has `channels`, each before it half as many, at least 8.
  Index channels_after(Index layer) const { return std::max<Index>(channels >> (convolutions - 1 - layer), std::min<Index>(channels, 8)); }
  std::vector<Field> fields() override {
    return {
        field(&convolutions, "convolutions", "number of 3×3 convolutions of stride 2; each halves the image's sides").in(1, 16),
        field(&channels, "channels", "channels of the last convolution; each earlier one has half as many").in(1, 65536),
        cell_field("recurrent cell of the decoder"),
        width_field("width of the cell's state"),
        embedding_field(),
        context_field("longest caption in tokens, <eos> included"),
        attention_field(),
        field(&gate, "gate", "a learned gate β on the image context, computed from the decoder's state"),
        field(&doubly_stochastic, "doubly_stochastic",
              "weight of the penalty Σ_i (1 − Σ_t α_ti)²: the attention to each region should sum to 1 over a caption")
            .in(0, 1e9),
        dropout_field("dropout on embeddings and on the input of the output layer"),
    };
  }
  std::optional<std::string> contradiction() override {
    if (doubly_stochastic > 0 && attention.style == "none") return "doubly_stochastic: without attention there are no weights";
    if (doubly_stochastic > 0 && attention.read == "hard") return "doubly_stochastic: applies only to soft attention, not to hard";
    return std::nullopt;
  }
};

/// A convolutional encoder from a picture to a grid of features, row by row: [B, L, D].
class ImageEncoder {
 public:
  /// `picture`: channels, height and width, with pixel values 0 … levels − 1.
  ImageEncoder(Scope const& scope, CaptionerSettings const& settings, std::vector<Index> const& picture, Index levels);

  /// image int64 [B, C, H, W] → a: 3×3 convolutions with stride two and relu, plus a position embedding per grid cell.
  Tensor operator()(Tensor const& image) const;

  Index fields() const { return rows_ * across_; }
  /// Grid cells per row.
  Index across() const { return across_; }
  /// Operations per picture.
  double flops() const { return flops_; }

 private:
  struct Convolution {
    Tensor weight, bias;
  };
  double levels_;
  Index rows_, across_;
  double flops_ = 0;
  std::vector<Convolution> convolutions_;
  Tensor field_vectors_;
};

}  // namespace heed
