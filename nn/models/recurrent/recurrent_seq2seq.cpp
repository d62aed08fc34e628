#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/attention/single_head.hpp"
#include "nn/decode.hpp"
#include "nn/model.hpp"
#include "nn/models/recurrent/recurrent.hpp"
#include "nn/models/recurrent/recurrent_settings.hpp"

namespace heed {

namespace {

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
  RecurrentSeq2seq(Parameters& parameters, RecurrentSeq2seqSettings const& s, Signature const& data)
      : settings_(s),
        source_tokens_(Scope(parameters).at("source_embedding"), data["source"].classes, s.embedding),
        target_tokens_(Scope(parameters).at("target_embedding"), data["inputs"].classes, s.embedding),
        encoder_(Scope(parameters).at("encoder"),
                 {s.cell, s.embedding, s.width, s.layers, s.bidirectional, s.reverse_source, s.dropout, s.normed()}),
        attention_(s.attention.style == "none"
                       ? std::optional<SingleHead>()
                       : std::optional<SingleHead>(std::in_place, Scope(parameters).at("attention"), s.attention, s.width, encoder_.width(),
                                                   s.context, AttentionParts{"inputs", "source"})),
        combine_(linear_if(s.luong(), Scope(parameters).at("combine"), encoder_.width() + s.width, s.width, false)),
        output_(Scope(parameters).at("output"), s.bahdanau() ? s.width + encoder_.width() + s.embedding : s.width, vocabulary(), true) {
    for (Index layer = 0; layer < s.layers; ++layer) {
      if (!s.luong() || s.bidirectional)
        bridges_.emplace_back(layer_scope(Scope(parameters).at("bridge"), layer, s.layers), encoder_.width(), s.width, true);
      decoder_.emplace_back(layer_scope(Scope(parameters).at("decoder"), layer, s.layers), s.cell,
                            layer == 0 ? s.embedding + beside_words() : s.width, s.width, s.normed());
    }
  }

  Outcome run(Batch const& batch, Pass const& pass) const override {
    EncodedSource const source = encode(batch, pass);
    Tensor const tokens = transpose(batch["inputs"]);
    Tensor const y = embedded(target_tokens_, tokens, "target_embedding", pass);
    StepwiseAttention attention(attention_ ? &*attention_ : nullptr, source.memory, source.lengths, batch.get("lengths"), pass);
    double const share = pass.training.noise ? settings_.scheduled_sample(pass.training.step) : 0;
    bool const stepwise = beside_words() > 0 || share > 0;
    Tensor const outputs = stepwise ? step_by_step(tokens, y, source, share, attention, pass) : at_once(y, source, attention, pass);
    attention.finish(stepwise ? HardChoices::Reach::later : HardChoices::Reach::position);
    return {{{Term(), {pass.dropout(outputs, settings_.dropout, "output"), output_.weight, output_.bias}}}};
  }
  void check(Batch const& batch) const override {
    Index const length = batch["source"].size(1);
    if (auto const most = limit(); most && length > *most)
      throw Error(fmt::format("model.context: a source has {} tokens, but the score location is learned for {}", length, *most));
  }
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return target_tokens_.weight.size(0); }
  Index width() const override { return settings_.width; }
  std::optional<Index> limit() const override {
    bool const by_position = attention_ && settings_.attention.score == "location";
    return by_position ? std::optional(settings_.context) : std::nullopt;
  }
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double flops_per_token() const override {
    double operations = encoder_.flops() + 2 * static_cast<double>(output_.weight.elements());
    for (RecurrentCell const& cell : decoder_) operations += cell.flops();
    if (combine_) operations += 2 * static_cast<double>(combine_->weight.elements());
    if (attention_) operations += 2 * static_cast<double>(settings_.context * (settings_.width + encoder_.width()));
    return operations;
  }
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override {
    return decoding_of(*this, given, pass, "source");
  }

 private:
  friend class SourceDecoding<RecurrentSeq2seq>;

  /// The encoded source: keys and values, and the decoder's initial states by layer.
  struct EncodedSource {
    std::optional<Projected> memory = {};
    Tensor lengths = {};
    std::vector<States> start = {};

    void keep(std::span<Index const> rows) {
      for (States& states : start) states = chosen_rows(states, rows);
      if (memory) memory = memory->chosen(rows);
      if (lengths.defined()) lengths = take(lengths, rows);
    }
  };
  /// The decoder between steps: states by layer, h̃ with input feeding, the first cell's columns(), and the position of the next word.
  struct DecoderState {
    std::vector<States> layers = {};
    Tensor fed = {};
    std::vector<Tensor> columns = {};
    Index position = 0;

    void keep(std::span<Index const> rows) {
      for (States& states : layers) states = chosen_rows(states, rows);
      if (fed.defined()) fed = take(fed, rows);
    }
  };

  EncodedSource encode(Batch const& batch, Pass const& pass) const {
    Tensor const lengths = batch.get("source_lengths");
    Tensor const x = embedded(source_tokens_, transpose(batch["source"]), "source_embedding", pass);
    auto const read = encoder_(x, lengths, {}, pass);
    EncodedSource source{{}, lengths, read.forward};
    if (attention_) source.memory = attention_->project(permute(read.outputs, {1, 0, 2}));
    for (std::size_t layer = 0; layer < bridges_.size(); ++layer) {
      States& start = source.start[layer];
      Tensor const ends = settings_.bidirectional ? concatenate({start[0], read.backward[layer][0]}, -1) : start[0];
      start = decoder_[layer].begin(ends.size(0));
      start[0] = tanh(bridges_[layer](ends));
    }
    return source;
  }
  DecoderState begin(EncodedSource const& source) const {
    Tensor const& s = source.start[0][0];
    return {source.start, settings_.input_feeding ? Tensor::zeros(s.shape(), s.dtype()) : Tensor(), columns()};
  }
  Tensor next_scores(Tensor const& tokens, EncodedSource const& source, DecoderState& writer, Pass const& pass) const {
    Tensor const all = transpose(tokens), y = target_tokens_(all), words = of_words(y, writer);
    StepwiseAttention attention(attention_ ? &*attention_ : nullptr, source.memory, source.lengths, {}, pass);
    Tensor output;
    for (Index t = 0; t < all.size(0); ++t) output = step(time_step(words, t), time_step(y, t), writer, attention, pass);
    return output_(output);
  }
  Tensor embedded(Embedding const& table, Tensor const& tokens, std::string const& stream, Pass const& pass) const {
    return pass.dropout(table(tokens), settings_.dropout, stream);
  }

  /// Width of the first cell's inputs other than the word.
  Index beside_words() const { return settings_.bahdanau() ? encoder_.width() : settings_.input_feeding ? settings_.width : 0; }
  /// The first cell's W by parts: for the word, and for the other inputs.
  std::vector<Tensor> columns() const {
    if (beside_words() == 0) return {decoder_[0].input().weight};
    return split(decoder_[0].input().weight, {settings_.embedding, beside_words()}, 1);
  }
  /// The part of W x from words […, embedding], with the bias.
  Tensor of_words(Tensor const& y, DecoderState const& writer) const { return linear(y, writer.columns[0], decoder_[0].input().bias); }
  /// h̃ = tanh(W_c [c; s]).
  Tensor attentional(Tensor const& context, Tensor const& state) const { return tanh((*combine_)(concatenate({context, state}, -1))); }

  /// One step for words y [B, embedding] and of_words(y): the head's input, [B, ·].
  Tensor step(Tensor const& words, Tensor const& y, DecoderState& writer, StepwiseAttention& attention, Pass const& pass) const {
    Index const position = writer.position++;
    Tensor a = words, context;
    if (settings_.bahdanau()) context = attention(writer.layers.back()[0], position);
    if (beside_words() > 0) a = linear(settings_.bahdanau() ? context : writer.fed, writer.columns[1], {}, a);
    for (std::size_t layer = 0; layer < decoder_.size(); ++layer) {
      States& states = writer.layers[layer];
      if (layer == 0) {
        states = decoder_[0].step_of(a, states);
      } else {
        auto const stream = fmt::format("decoder.{}.{}", layer, position);
        states = decoder_[layer].step(pass.dropout(writer.layers[layer - 1][0], settings_.dropout, stream), states);
      }
    }
    Tensor const s = writer.layers.back()[0];
    if (settings_.bahdanau()) return concatenate({s, context, y}, -1);
    Tensor const top = settings_.luong() ? attentional(attention(s, position), s) : s;
    if (settings_.input_feeding) writer.fed = top;
    return top;
  }

  /// The head's input, [B, T, ·], for words y [T, B, embedding]: all steps at once if none depends on another except through the states;
  /// else step by step, with sampled words with probability `share`.
  Tensor at_once(Tensor const& y, EncodedSource const& source, StepwiseAttention& attention, Pass const& pass) const {
    Tensor x = y;
    for (std::size_t layer = 0; layer < decoder_.size(); ++layer) {
      if (layer > 0) x = pass.dropout(x, settings_.dropout, fmt::format("decoder.{}", layer));
      x = decoder_[layer].scan(x, {}, source.start[layer], pass).outputs;
    }
    Tensor const states = permute(x, {1, 0, 2});
    return settings_.luong() ? attentional(attention(states, 0), states) : states;
  }
  Tensor step_by_step(Tensor const& tokens, Tensor const& y, EncodedSource const& source, double share, StepwiseAttention& attention,
                      Pass const& pass) const {
    DecoderState writer = begin(source);
    Tensor const words = of_words(y, writer);
    std::vector<Tensor> outputs;
    for (Index t = 0; t < tokens.size(0); ++t) {
      Tensor read = time_step(y, t), of_read = time_step(words, t);
      if (share > 0 && t > 0) {
        Tensor const now = scheduled_sample(reshape(slice(tokens, 0, t, t + 1), {-1}), outputs.back(), share, t, pass);
        read = embedded(target_tokens_, now, fmt::format("target_embedding.{}", t), pass);
        of_read = of_words(read, writer);
      }
      outputs.push_back(step(of_read, read, writer, attention, pass));
    }
    return stack(outputs, 1);
  }

  /// The words [B] read at a position in training: given or, with probability `share`, sampled from the last output (Bengio et al. 2015).
  Tensor scheduled_sample(Tensor const& given, Tensor const& output, double share, Index position, Pass const& pass) const {
    NoGrad const quiet;
    Tensor const probabilities = softmax(output_(output)).to(DType::float64);
    auto const p = probabilities.data<double>();
    Stream const stream = pass.training.noise->child("scheduled_sampling");
    Tensor words = given.clone();
    auto const tokens = words.mutable_data<std::int64_t>();
    auto const classes = static_cast<std::size_t>(vocabulary());
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      Stream const of_row = stream.child(pass.sequence(static_cast<Index>(row)));
      auto const draw = static_cast<std::uint64_t>(2 * position);
      if (of_row.uniform(draw) >= share) continue;
      double left = of_row.uniform(draw + 1);
      std::size_t token = 0;
      while (token + 1 < classes && (left -= p[row * classes + token]) >= 0) ++token;
      tokens[row] = static_cast<Index>(token);
    }
    return words;
  }

  RecurrentSeq2seqSettings settings_;
  Embedding source_tokens_, target_tokens_;
  Recurrent encoder_;
  std::optional<SingleHead> attention_;
  std::optional<Linear> combine_;
  Linear output_;
  std::vector<Linear> bridges_;  // by layer; empty: the encoder's states are copied
  std::vector<RecurrentCell> decoder_;
};

Declared<ModelKind> const recurrent_seq2seq_model{model_of<RecurrentSeq2seq, RecurrentSeq2seqSettings>(
    "recurrent_seq2seq", "recurrent encoder–decoder (Bahdanau et al. 2015, Luong et al. 2015)", {{"source"}, {"inputs"}, {"targets"}})};

}  // namespace

}  // namespace heed
