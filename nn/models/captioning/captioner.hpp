#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/attention/single_head.hpp"
#include "nn/model.hpp"
#include "nn/models/recurrent/recurrent.hpp"
#include "nn/models/recurrent/recurrent_settings.hpp"

namespace heed {

/// `model: {kind: captioner, …}`, whose attention is by default additive and in Bahdanau's style, as in Xu et al. 2015.
struct CaptionerSettings : RecurrentDecoderSettings {
  Index convolutions = 3;
  Index channels = 64;
  bool gate = true;
  double doubly_stochastic = 0;

  CaptionerSettings();
  /// Output channels of convolution `layer`: the last has `channels`, each before it half as many, at least 8.
  Index channels_after(Index layer) const;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
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

/// Show, Attend and Tell (Xu et al. 2015, section 3.1): an LSTM generates a caption word by word from the image features a:
///
///   bahdanau   z_t = β_t attend(s_{t−1}, a);  s_t = cell([E y_{t−1}; z_t], s_{t−1})       as in the paper
///   luong      s_t = cell(E y_{t−1}, s_{t−1});  z_t = β_t attend(s_t, a)                  no attention touches a later word
///   none       s_t = cell(E y_{t−1}, s_{t−1})                                           the picture is the start alone
///   logits     L_o (E y_{t−1} + L_s s_t + L_z z_t),  β_t = σ(f_β(s)) of the state that asks,  s_0 = tanh(W mean a), and so an LSTM's c_0
///
/// The doubly stochastic penalty is λ Σ_i (1 − Σ_t α_ti)², with α the attention weights, averaged over the pictures (equation 14).
class Captioner : public Model {
 public:
  Captioner(Parameters& parameters, CaptionerSettings const& settings, Signature const& data);

  Outcome run(Batch const& batch, Pass const& pass) const override;
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return words_.weight.size(0); }
  Index width() const override { return settings_.width; }
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double flops_per_token() const override;
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;

 private:
  class IncrementalDecoding;

  /// An encoded picture: keys and values, and the cell's initial states.
  struct EncodedImage {
    std::optional<Projected> memory = {};
    States start = {};
  };
  EncodedImage encode(Batch const& batch) const;

  /// The gated context [B, D] of a state's attention to the picture.
  Tensor attended(Tensor const& state, Index position, StepwiseAttention& attention) const;
  /// The head's input from y_{t−1}, s_t and z_t (undefined: none).
  Tensor head_input(Tensor const& y, Tensor const& state, Tensor const& z) const;
  /// One step at `position`: returns the head's input, [B, embedding]; replaces the states.
  Tensor step(Tensor const& y, States& states, Index position, StepwiseAttention& attention) const;
  /// All steps of y [T, B, embedding]: the head's input, [B, T, embedding].
  Tensor at_once(Tensor const& y, EncodedImage const& seen, StepwiseAttention& attention, Pass const& pass) const;
  Tensor step_by_step(Tensor const& y, EncodedImage const& seen, StepwiseAttention& attention) const;

  CaptionerSettings settings_;
  ImageEncoder encoder_;
  Embedding words_;
  std::vector<Linear> starts_;  // one per state
  std::optional<SingleHead> attention_;
  std::optional<Linear> gate_;
  RecurrentCell cell_;
  Linear readout_, output_;
};

}  // namespace heed
