#include "nn/models/single_attention.hpp"

#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/attention.hpp"
#include "nn/layers.hpp"
#include "nn/model.hpp"

namespace heed {

namespace {

constexpr double no_value = -100;  // the logit of a token that is no value: e⁻¹⁰⁰ of an answer's probability

/// The width of the vector that represents a key.
Index input_width(SingleAttentionSettings const& s) { return s.input_width.value_or(s.keys); }

Tensor scaled_identity(Index size, double value, DType dtype) {
  return scale(one_hot(Tensor::arange(size, DType::int64), size, dtype), value);
}

/// One-hot vectors of the length that the settings ask for.
Tensor one_hot_vectors(SingleAttentionSettings const& s, Index count, DType dtype) {
  return scaled_identity(count, s.input_norm.value_or(std::sqrt(static_cast<double>(count))), dtype);
}

/// The vectors of the keys 1 … K and, first, of the blank: zeros.
Tensor key_vectors(SingleAttentionSettings const& s, DType dtype) {
  if (s.inputs != "gaussian") return pad(one_hot_vectors(s, s.keys, dtype), 0, 1, 0);
  double const root = std::sqrt(static_cast<double>(input_width(s)));
  Tensor const drawn = Tensor::normal({s.keys, input_width(s)}, Stream(0, "single_attention.inputs"), dtype);
  return pad(scale(drawn, s.input_norm.value_or(root) / root), 0, 1, 0);
}

/// Tokens at the positions first, first + step, … of every row, less `base`: int64 [B, count].
Tensor tokens_at(Tensor const& rows, Index first, Index count, Index step, Index base = 0) {
  auto const all = rows.data<std::int64_t>();
  std::vector<Index> found;
  for (Index row = 0; row < rows.size(0); ++row)
    for (Index i = 0; i < count; ++i) found.push_back(at(all, row * rows.size(1) + first + i * step) - base);
  return Tensor::of(found, {rows.size(0), count});
}

/// A single attention layer between fixed inputs and a readout, without residual, norm, MLP, positions and biases, to isolate the effect of
/// score and heads (claims of Vaswani et al. 2017, sections 3.2.1 and 3.2.2; Britz et al. 2017).
///
/// A sequence is k_1 v_1 … k_n v_n q_1 … q_g, possibly continued (the tasks recall and lookup): the query is made of the vectors x of all g
/// question tokens, concatenated, and the answers are at the last g positions.
///
///     c = Σ_j a_j(W_q [x(q_1) … x(q_g)], W_k x(k_j)) y(v_j)
///     fixed readout:   logits = sharpness · c,  y(v) = onehot(v);  one head, g = 1
///     linear readout:  logits = W_o c,          y(v) = W_v x(v)
///
/// x is a multiple of a one-hot vector or, for a key, a fixed Gaussian vector: entries have variance 1 unless input_norm gives another
/// length. Initial queries and keys have entries of variance spread² if the inputs' is 1. Tokens are the tasks': a blank, keys, values.
class SingleAttention : public Model {
 public:
  SingleAttention(Parameters& parameters, SingleAttentionSettings const& s, Signature const& data)
      : settings_(s),
        context_(s.context.value_or(2 * s.pairs + s.question)),
        values_(data["inputs"].classes - 1 - s.keys),
        key_width_(s.key_width.value_or(s.width / s.heads)),
        value_width_(s.value_width.value_or(s.width / s.heads)),
        part_("blocks.0.attention"),
        query_(Scope(parameters).at(part_ + ".query"), s.question * input_width(s), s.heads * key_width_, false,
               Initial::preserving(s.question * input_width(s), s.spread)),
        key_(Scope(parameters).at(part_ + ".key"), input_width(s), s.heads * key_width_, false,
             Initial::preserving(input_width(s), s.spread)),
        attention_(Scope(parameters).at(part_), s.attention, {s.heads, key_width_, s.pairs}, 0, nullptr, {"", ""}) {
    if (values_ < 1) throw Error(fmt::format("model.keys: of {} tokens, a blank and {} keys leave no value", vocabulary(), s.keys));
    key_vectors_ = key_vectors(s, parameters.dtype());
    bool const fixed = s.readout == "fixed";
    value_vectors_ = fixed ? scaled_identity(values_, 1, parameters.dtype()) : one_hot_vectors(s, values_, parameters.dtype());
    if (fixed) return;
    Scope const scope = Scope(parameters).at(part_);
    value_.emplace(scope.at("value"), values_, s.heads * value_width_, false, Initial::preserving(values_));
    output_.emplace(scope.at("output"), s.heads * value_width_, s.question * values_, false, Initial::preserving(s.heads * value_width_));
  }

  Outcome run(Batch const& batch, Pass const& pass) const override {
    ModelPart const here(part_);
    Tensor const& inputs = batch["inputs"];
    if (inputs.size(1) != context_)
      throw Error(fmt::format("single_attention: sequences of {} tokens, not of {}", inputs.size(1), context_));
    Index const pairs = settings_.pairs, question = settings_.question;
    Tensor const asked = embedding(key_vectors_, tokens_at(inputs, 2 * pairs, question, 1));              // [B, g, in]
    Tensor const keys = embedding(key_vectors_, tokens_at(inputs, 0, pairs, 2));                          // [B, n, in]
    Tensor const values = embedding(value_vectors_, tokens_at(inputs, 1, pairs, 2, 1 + settings_.keys));  // [B, n, C]
    Tensor const query = reshape(asked, {asked.size(0), 1, question * asked.size(2)});

    Tensor const context = attention_(query_(query), key_(keys), value_ ? (*value_)(values) : values, {}, pass);
    Tensor const scores = output_ ? (*output_)(context) : scale(context, settings_.sharpness);  // [B, 1, g·C]
    // At the answers' positions and tokens of the rows' [T, V].
    Tensor const apart = reshape(scores, {-1, question, values_});
    Tensor const logits = pad(pad(apart, 2, 1 + settings_.keys, 0, no_value), 1, context_ - question, 0);
    return {{{Term(), {logits}}}};
  }
  void check(Batch const& batch) const override {
    auto const inputs = batch["inputs"].data<std::int64_t>(), targets = batch["targets"].data<std::int64_t>();
    Index const memory = 2 * settings_.pairs, first_answer = context_ - settings_.question;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      auto const position = static_cast<Index>(i) % context_;
      bool const wants_value = position < memory && position % 2 == 1, wants_key = position < memory + settings_.question && !wants_value;
      if ((wants_value && inputs[i] <= settings_.keys) || (wants_key && inputs[i] > settings_.keys))
        throw Error(
            fmt::format("model.pairs: position {} of a sequence should hold a {}, not token {}: are pairs and keys those of the data?",
                        position, wants_key ? "key" : "value", inputs[i]));
      if (targets[i] >= 0 && position < first_answer)
        throw Error(
            fmt::format("model.question: a sequence has answers at its last {} positions, but position {} of {} has a target (does a "
                        "sequence have several questions?)",
                        settings_.question, position, context_));
    }
  }
  Index context() const override { return context_; }
  Index vocabulary() const override { return 1 + settings_.keys + values_; }
  Index width() const override { return settings_.width; }
  std::optional<Index> limit() const override { return context_; }
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double flops_per_token() const override {
    double const in = static_cast<double>(key_vectors_.size(1)), h = static_cast<double>(settings_.heads);
    double const keys = 2 * h * static_cast<double>(key_width_) * (in + 1);
    double const values = 2 * h * static_cast<double>(value_width_) * (static_cast<double>(values_) + 1);
    return (keys + values) / 2;  // of every second token
  }

 private:
  SingleAttentionSettings settings_;
  Index context_, values_;
  Index key_width_, value_width_;  ///< per head
  Tensor key_vectors_;             ///< [1 + K, in]: zeros for blank
  Tensor value_vectors_;           ///< [C, C]
  std::string part_;
  Linear query_, key_;
  std::optional<Linear> value_, output_;
  Attention attention_;
};

Declared<ModelKind> const single_attention_model{model_of<SingleAttention, SingleAttentionSettings>(
    "single_attention", "a single attention layer between fixed inputs and a readout, for the tasks recall and lookup",
    {{"inputs"}, {"targets"}})};

}  // namespace

}  // namespace heed
