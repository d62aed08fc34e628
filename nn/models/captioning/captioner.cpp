#include "nn/models/captioning/captioner.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/single_head.hpp"
#include "nn/decode.hpp"
#include "nn/model.hpp"
#include "nn/models/recurrent/recurrent.hpp"

namespace heed {

ImageEncoder::ImageEncoder(Scope const& scope, CaptionerSettings const& s, std::vector<Index> const& picture, Index levels)
    : levels_(to_double(levels)), rows_(picture[1]), across_(picture[2]) {
  Index channels = picture[0];
  for (Index layer = 0; layer < s.convolutions; ++layer) {
    Scope const here = scope.at(fmt::format("{}", layer));
    Index const out = s.channels_after(layer);
    convolutions_.push_back({here.parameter("weight", {out, channels, 3, 3}, Initial::weight(), WeightDecay::on),
                             here.parameter("bias", {out}, Initial::constant(0), WeightDecay::off)});
    rows_ = (rows_ + 1) / 2;
    across_ = (across_ + 1) / 2;
    flops_ += 2 * to_double(9 * channels * fields()) * to_double(out);
    channels = out;
  }
  field_vectors_ = scope.parameter("places.weight", {fields(), channels}, Initial::weight(), WeightDecay::on);
}

Tensor ImageEncoder::operator()(Tensor const& image) const {
  ModelPart const here("eye");
  Tensor x = scale(image.to(field_vectors_.dtype()), 1 / std::max(levels_ - 1, 1.0));
  for (auto const& [weight, bias] : convolutions_) x = relu(conv2d(x, weight, bias, 2, 1));
  return transpose(reshape(x, {x.size(0), x.size(1), -1})) + field_vectors_;
}

namespace {

/// λ Σ_i (1 − Σ_t α_ti)² of weights α [B, H, T, L], the mean over B; the heads' mean.
Tensor doubly_stochastic(Tensor const& weights, double factor) {
  Tensor const missing = 1 - sum(weights, {2});
  return scale(sum_of_squares(missing), factor / to_double(weights.size(0) * weights.size(1)));
}

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
  Captioner(Parameters& parameters, CaptionerSettings const& s, Signature const& data)
      : settings_(s),
        encoder_(Scope(parameters).at("eye"), s, data["image"].shape, data["image"].classes),
        words_(Scope(parameters).at("words"), data["inputs"].classes, s.embedding),
        cell_(Scope(parameters).at("cell"), s.cell, s.embedding + (s.attention.bahdanau() ? s.channels : 0), s.width),
        readout_(Scope(parameters).at("tell"), s.width + (s.attention.style == "none" ? 0 : s.channels), s.embedding, true),
        output_(Scope(parameters).at("output"), s.embedding, data["inputs"].classes, true) {
    Scope const scope(parameters);
    for (Index state = 0; state < cell_kind(s.cell).states; ++state)
      starts_.emplace_back(layer_scope(scope.at("start"), state, cell_kind(s.cell).states), s.channels, s.width, true);
    if (s.attention.style == "none") return;
    attention_.emplace(scope.at("attention"), s.attention, s.width, s.channels, encoder_.fields(),
                       AttentionParts{"inputs", "image", encoder_.across()});
    if (s.gate) gate_.emplace(scope.at("gate"), s.width, 1, true);
  }

  Outcome run(Batch const& batch, Pass const& given) const override {
    Observer observer = given.watching.observer != nullptr ? *given.watching.observer : Observer();
    AttentionRecorder recorder({.weights = true}, observer.attention);
    observer.attention = &recorder;
    Pass pass = given;
    if (settings_.doubly_stochastic > 0) pass.watching.observer = &observer;
    EncodedImage const seen = encode(batch, pass);
    Tensor const y = pass.dropout(words_(transpose(batch["inputs"])), settings_.dropout, "words");
    StepwiseAttention attention(attention_ ? &*attention_ : nullptr, seen.memory, {}, batch.get("lengths"), pass);
    bool const stepwise = settings_.attention.bahdanau();
    Tensor const outputs = stepwise ? step_by_step(y, seen, attention) : at_once(y, seen, attention, pass);
    attention.finish(stepwise ? HardChoices::Reach::later : HardChoices::Reach::position);
    Outcome outcome{{{Term(), {pass.dropout(outputs, settings_.dropout, "output"), output_.weight, output_.bias}}}};
    for (AttentionRecord const& record : recorder.records())
      outcome.penalty = doubly_stochastic(record.weights, settings_.doubly_stochastic);
    return outcome;
  }
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return words_.weight.size(0); }
  Index width() const override { return settings_.width; }
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double flops_per_token() const override {
    double operations = cell_.flops() + encoder_.flops() / to_double(settings_.context);
    operations += 2 * to_double(readout_.weight.elements() + output_.weight.elements());
    if (attention_) operations += 2 * to_double(encoder_.fields() * (settings_.width + settings_.channels));
    return operations;
  }
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override { return decoding_of(*this, given, pass, "image"); }

 private:
  friend class SourceDecoding<Captioner>;

  /// An encoded picture: keys and values, and the cell's initial states.
  struct EncodedImage {
    std::optional<Projected> memory = {};
    States start = {};

    void keep(std::span<Index const> rows) {
      start = chosen_rows(start, rows);
      if (memory) memory = memory->chosen(rows);
    }
  };
  /// The cell's states, and the position of the next word.
  struct CaptionState {
    States states = {};
    Index position = 0;

    void keep(std::span<Index const> rows) { states = chosen_rows(states, rows); }
  };
  EncodedImage encode(Batch const& batch, Pass const&) const {
    Tensor const fields = encoder_(batch["image"]), all = mean(fields, {1});
    EncodedImage seen;
    for (Linear const& start : starts_) seen.start.push_back(tanh(start(all)));
    if (attention_) seen.memory = attention_->project(fields);
    return seen;
  }
  CaptionState begin(EncodedImage const& seen) const { return {seen.start}; }
  Tensor next_scores(Tensor const& tokens, EncodedImage const& seen, CaptionState& state, Pass const& pass) const {
    Tensor const y = words_(transpose(tokens));
    StepwiseAttention attention(attention_ ? &*attention_ : nullptr, seen.memory, {}, {}, pass);
    Tensor output;
    for (Index t = 0; t < y.size(0); ++t) output = step(time_step(y, t), state, attention);
    return output_(output);
  }

  /// The gated context [B, D] of a state's attention to the picture.
  Tensor attended(Tensor const& state, Index position, StepwiseAttention& attention) const {
    Tensor const z = attention(state, position);
    return gate_ ? sigmoid((*gate_)(state)) * z : z;
  }
  /// The head's input from y_{t−1}, s_t and z_t (undefined: none).
  Tensor head_input(Tensor const& y, Tensor const& state, Tensor const& z) const {
    return y + readout_(z.defined() ? concatenate({state, z}, -1) : state);
  }
  /// One step: returns the head's input, [B, embedding].
  Tensor step(Tensor const& y, CaptionState& state, StepwiseAttention& attention) const {
    States& states = state.states;
    Index const position = state.position++;
    Tensor z;
    if (settings_.attention.bahdanau()) z = attended(states[0], position, attention);
    states = cell_.step(z.defined() ? concatenate({y, z}, -1) : y, states);
    if (settings_.attention.luong()) z = attended(states[0], position, attention);
    return head_input(y, states[0], z);
  }
  /// All steps of y [T, B, embedding]: the head's input, [B, T, embedding].
  Tensor at_once(Tensor const& y, EncodedImage const& seen, StepwiseAttention& attention, Pass const& pass) const {
    Tensor const states = permute(cell_.scan(y, {}, seen.start, pass).outputs, {1, 0, 2});
    Tensor const z = attention_ ? attended(states, 0, attention) : Tensor();
    return head_input(permute(y, {1, 0, 2}), states, z);
  }
  Tensor step_by_step(Tensor const& y, EncodedImage const& seen, StepwiseAttention& attention) const {
    CaptionState state = begin(seen);
    std::vector<Tensor> outputs;
    for (Index t = 0; t < y.size(0); ++t) outputs.push_back(step(time_step(y, t), state, attention));
    return stack(outputs, 1);
  }

  CaptionerSettings settings_;
  ImageEncoder encoder_;
  Embedding words_;
  std::vector<Linear> starts_;  // one per state
  std::optional<SingleHead> attention_;
  std::optional<Linear> gate_;
  RecurrentCell cell_;
  Linear readout_, output_;
};

Declared<ModelKind> const captioner_model{model_of<Captioner, CaptionerSettings>(
    "captioner", "image captioning: convolutions, and a recurrent decoder that attends to image regions (Xu et al. 2015)",
    {{.name = "image", .picture = true}, {"inputs"}, {"targets"}})};

}  // namespace

}  // namespace heed
