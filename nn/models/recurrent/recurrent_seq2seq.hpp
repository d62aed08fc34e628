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

/// `model: {kind: recurrent_seq2seq, …}`.
struct RecurrentSeq2seqSettings : RecurrentDecoderSettings {
  bool bidirectional = false;
  bool reverse_source = false;
  bool input_feeding = false;
  double scheduled_sampling = 0;
  Index scheduled_sampling_steps = 0;

  /// The probability that a training step after `step` updates reads a sampled word.
  double scheduled_sample(Index step) const;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// The encoder–decoders of Sutskever et al. 2014, Bahdanau et al. 2015 and Luong et al. 2015: recurrent cells encode the source as states
/// h, and others generate the target, with s_t the state of their last layer and c_t the context:
///
///   none       s_t = cell(y_{t−1}, s_{t−1});                            logits = W s_t
///   bahdanau   c_t = attend(s_{t−1}, h);  s_t = cell([y_{t−1}; c_t], s_{t−1});  logits = W [s_t; c_t; y_{t−1}]
///   luong      s_t = cell(y_{t−1}, s_{t−1});  c_t = attend(s_t, h);  h̃_t = tanh(W_c [c_t; s_t]);  logits = W h̃_t
///
/// Input feeding gives the first layer [y_{t−1}; h̃_{t−1}]. The decoder starts from tanh(bridge [last state forward; backward]) of the
/// encoder's h, an LSTM's c from 0; in Luong's style with a unidirectional encoder it starts from the encoder's last states themselves.
class RecurrentSeq2seq : public Model {
 public:
  RecurrentSeq2seq(Parameters& parameters, RecurrentSeq2seqSettings const& settings, Index source_vocabulary, Index vocabulary);
  RecurrentSeq2seq(Parameters& parameters, RecurrentSeq2seqSettings const& settings, Signature const& data)
      : RecurrentSeq2seq(parameters, settings, data["source"].classes, data["inputs"].classes) {}

  Outcome run(Batch const& batch, Pass const& pass) const override;
  void check(Batch const& batch) const override;
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return target_tokens_.weight.size(0); }
  Index width() const override { return settings_.width; }
  std::optional<Index> limit() const override;
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double flops_per_token() const override;
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;

 private:
  class IncrementalDecoding;

  /// The encoded source: keys and values, and the decoder's initial states by layer.
  struct EncodedSource {
    std::optional<Projected> memory = {};
    Tensor lengths = {};
    std::vector<States> start = {};
  };
  /// The decoder's state between steps: states by layer, and h̃ with input feeding.
  struct DecoderState {
    std::vector<States> layers = {};
    Tensor fed = {};
  };

  EncodedSource encode(Batch const& batch, Pass const& pass) const;
  DecoderState begin(EncodedSource const& source) const;
  Tensor embedded(Embedding const& table, Tensor const& tokens, std::string const& stream, Pass const& pass) const;

  /// Width of the first cell's inputs other than the word.
  Index beside_words() const;
  /// The first cell's W by parts: for the word, and for the other inputs.
  std::vector<Tensor> columns() const;
  /// The part of W x from words […, embedding], with the bias.
  Tensor of_words(Tensor const& y, std::vector<Tensor> const& columns) const;
  /// One step at `position` for words y [B, embedding] and of_words(y): the head's input, [B, ·].
  Tensor step(Tensor const& words, Tensor const& y, std::vector<Tensor> const& columns, DecoderState& writer, Index position,
              StepwiseAttention& attention, Pass const& pass) const;
  /// The head's input, [B, T, ·], for words y [T, B, embedding]: all steps at once if none depends on another except through the states;
  /// else step by step, with sampled words with probability `share`.
  Tensor at_once(Tensor const& y, EncodedSource const& source, StepwiseAttention& attention, Pass const& pass) const;
  Tensor step_by_step(Tensor const& tokens, Tensor const& y, EncodedSource const& source, double share, StepwiseAttention& attention,
                      Pass const& pass) const;
  /// h̃ = tanh(W_c [c; s]).
  Tensor attentional(Tensor const& context, Tensor const& state) const;
  /// The words [B] read at a position in training: the given ones or, with probability `share`, samples from the previous output (Bengio et
  /// al. 2015).
  Tensor scheduled_sample(Tensor const& given, Tensor const& output, double share, Index position, Pass const& pass) const;

  RecurrentSeq2seqSettings settings_;
  Embedding source_tokens_, target_tokens_;
  Recurrent encoder_;
  std::optional<SingleHead> attention_;
  std::optional<Linear> combine_;
  Linear output_;
  std::vector<Linear> bridges_;  // by layer; empty: the encoder's states are copied
  std::vector<RecurrentCell> decoder_;
};

}  // namespace heed
