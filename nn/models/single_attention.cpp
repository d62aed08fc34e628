#include "nn/models/single_attention.hpp"

#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

Declared<ModelKind> const single_attention_model{model_of<SingleAttention, SingleAttentionSettings>(
    "single_attention", "a single attention layer between fixed inputs and a readout, for the tasks recall and lookup",
    {{"inputs"}, {"targets"}})};

constexpr double no_value = -100;  // the logit of a token that is no value: e⁻¹⁰⁰ of an answer's probability

/// Initial weights whose products with vectors of variance 1 an entry have variance spread².
Initial preserving(Index inputs, double spread = 1) { return Initial::normal(spread / std::sqrt(static_cast<double>(inputs))); }

/// The width of the vector that represents a key.
Index input_width(SingleAttentionSettings const& s) { return s.input_width.value_or(s.keys); }

Tensor scaled_identity(Index size, double value, DType dtype) {
  return scale(one_hot(Tensor::arange(size, DType::int64), size, dtype), value);
}

/// One-hot vectors of the length that the settings ask for.
Tensor one_hot_vectors(SingleAttentionSettings const& s, Index count, DType dtype) {
  return scaled_identity(count, s.input_norm.value_or(std::sqrt(static_cast<double>(count))), dtype);
}

Tensor gaussian_vectors(SingleAttentionSettings const& s, DType dtype) {
  double const root = std::sqrt(static_cast<double>(input_width(s)));
  return scale(Tensor::normal({s.keys, input_width(s)}, Stream(0, "single_attention.inputs"), dtype), s.input_norm.value_or(root) / root);
}

/// The vectors of the keys 1 … K and, first, of the blank: zeros.
Tensor key_vectors(SingleAttentionSettings const& s, DType dtype) {
  return pad(s.inputs == "gaussian" ? gaussian_vectors(s, dtype) : one_hot_vectors(s, s.keys, dtype), 0, 1, 0);
}

/// Tokens at the positions first, first + step, … of every row, less `base`: int64 [B, count].
Tensor tokens_at(Tensor const& rows, Index first, Index count, Index step, Index base = 0) {
  auto const all = rows.data<std::int64_t>();
  std::vector<Index> found;
  for (Index row = 0; row < rows.size(0); ++row)
    for (Index i = 0; i < count; ++i) found.push_back(at(all, row * rows.size(1) + first + i * step) - base);
  return Tensor::of(found, {rows.size(0), count});
}

}  // namespace

std::vector<Field> SingleAttentionSettings::fields() {
  return {
      field(&pairs, "pairs", "key–value pairs at the beginning of a sequence, as data.pairs").in(1, 1 << 20),
      field(&keys, "keys", "number of different keys, as data.keys; the other tokens are values").in(1, 1 << 20),
      field(&question, "question", "tokens of the query after the pairs; as many answers, at the last positions").in(1, 1 << 20),
      field(&context, "context", "tokens of a sequence; default: 2·pairs + question").in(3, 1 << 22),
      field(&inputs, "inputs", "vectors of the keys").one_of({"one_hot", "gaussian"}),
      field(&input_width, "input_width", "width of Gaussian inputs; default: keys").in(1, 65536),
      field(&input_norm, "input_norm", "norm of the vectors of keys and, with readout: linear, of values; default: entries of variance 1")
          .above(0),
      field(&heads, "heads", "number of attention heads").in(1, 1000),
      field(&width, "width", "width of queries, keys and values, over all heads").in(1, 65536),
      field(&key_width, "key_width", "width of a head's queries and keys; default: width / heads").in(1, 65536),
      field(&value_width, "value_width", "width of a head's values; default: width / heads").in(1, 65536),
      field(&attention, "attention", "a variant's name, or a section with score, align and read"),
      field(&spread, "spread", "initial standard deviation of the entries of queries and keys (instead of init)").above(0),
      field(&readout, "readout",
            "fixed: logits are the weights of the values times sharpness; linear: a linear function of projected values")
          .one_of({"fixed", "linear"}),
      field(&sharpness, "sharpness", "factor of the fixed readout").above(0),
  };
}

std::optional<std::string> SingleAttentionSettings::contradiction() {
  if ((!key_width || (readout == "linear" && !value_width)) && width % heads != 0)
    return fmt::format("heads: {} heads do not divide the width {} (or give key_width and value_width)", heads, width);
  if (readout == "fixed" && heads > 1) return "heads: the fixed readout has one head; several need readout: linear";
  if (readout == "fixed" && question > 1) return "question: the fixed readout gives one answer; several need readout: linear";
  if (inputs == "one_hot" && input_width)
    return "input_width: applies to inputs: gaussian; one-hot inputs have as many entries as there are keys";
  if (context && *context < 2 * pairs + question)
    return fmt::format("context: {} tokens do not hold {} pairs and a question of {}", *context, pairs, question);
  if (auto const key = attention.key_of_many_heads(); !key.empty())
    return "attention." + key + ": applies only to models with residual blocks";
  return std::nullopt;
}

SingleAttention::SingleAttention(Parameters& parameters, SingleAttentionSettings const& s, Index vocabulary)
    : settings_(s),
      context_(s.context.value_or(2 * s.pairs + s.question)),
      values_(vocabulary - 1 - s.keys),
      key_width_(s.key_width.value_or(s.width / s.heads)),
      value_width_(s.value_width.value_or(s.width / s.heads)),
      part_("blocks.0.attention"),
      query_(Scope(parameters).at(part_ + ".query"), s.question * input_width(s), s.heads * key_width_, false,
             preserving(s.question * input_width(s), s.spread)),
      key_(Scope(parameters).at(part_ + ".key"), input_width(s), s.heads * key_width_, false, preserving(input_width(s), s.spread)),
      attention_(Scope(parameters).at(part_), s.attention, {s.heads, key_width_, s.pairs}, 0, nullptr, {"", ""}) {
  if (values_ < 1) throw Error(fmt::format("model.keys: of {} tokens, a blank and {} keys leave no value", vocabulary, s.keys));
  key_vectors_ = key_vectors(s, parameters.dtype());
  bool const fixed = s.readout == "fixed";
  value_vectors_ = fixed ? scaled_identity(values_, 1, parameters.dtype()) : one_hot_vectors(s, values_, parameters.dtype());
  if (fixed) return;
  Scope const scope = Scope(parameters).at(part_);
  value_.emplace(scope.at("value"), values_, s.heads * value_width_, false, preserving(values_));
  output_.emplace(scope.at("output"), s.heads * value_width_, s.question * values_, false, preserving(s.heads * value_width_));
}

void SingleAttention::check(Batch const& batch) const {
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

Outcome SingleAttention::run(Batch const& batch, Pass const& pass) const {
  ModelPart const here(part_);
  Tensor const& inputs = batch["inputs"];
  if (inputs.size(1) != context_) throw Error(fmt::format("single_attention: sequences of {} tokens, not of {}", inputs.size(1), context_));
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

double SingleAttention::flops_per_token() const {
  double const in = static_cast<double>(key_vectors_.size(1)), h = static_cast<double>(settings_.heads);
  double const keys = 2 * h * static_cast<double>(key_width_) * (in + 1);
  double const values = 2 * h * static_cast<double>(value_width_) * (static_cast<double>(values_) + 1);
  return (keys + values) / 2;  // of every second token
}

}  // namespace heed
