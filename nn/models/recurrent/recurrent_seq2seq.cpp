#include "nn/models/recurrent/recurrent_seq2seq.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

Declared<ModelKind> const recurrent_seq2seq_model{model_of<RecurrentSeq2seq, RecurrentSeq2seqSettings>(
    "recurrent_seq2seq", "recurrent encoder–decoder (Bahdanau et al. 2015, Luong et al. 2015)", {{"source"}, {"inputs"}, {"targets"}})};

RecurrentShape encoder_shape(RecurrentSeq2seqSettings const& s) {
  return {.cell = s.cell,
          .in = s.embedding,
          .width = s.width,
          .layers = s.layers,
          .bidirectional = s.bidirectional,
          .from_end = s.reverse_source,
          .dropout = s.dropout,
          .normed = s.normed()};
}

/// Whether the decoder starts from the encoder's states themselves.
bool copies_states(RecurrentSeq2seqSettings const& s) { return s.luong() && !s.bidirectional; }

}  // namespace

double RecurrentSeq2seqSettings::scheduled_sample(Index step) const {
  if (scheduled_sampling_steps == 0) return scheduled_sampling;
  return scheduled_sampling * std::min(1.0, static_cast<double>(step) / static_cast<double>(scheduled_sampling_steps));
}

std::vector<Field> RecurrentSeq2seqSettings::fields() {
  return {
      cell_field("recurrent cell of encoder and decoder"),
      layers_field("layers of the encoder, and as many of the decoder"),
      width_field(),
      embedding_field(),
      context_field("longest source and target in tokens; longer ones also work, except with the score location"),
      field(&bidirectional, "bidirectional", "bidirectional encoder"),
      field(&reverse_source, "reverse_source", "reverse the source (Sutskever et al. 2014)"),
      attention_field(),
      field(&input_feeding, "input_feeding", "the decoder's input includes the last attentional vector (Luong et al. 2015)"),
      dropout_field(),
      norm_field(),
      field(&scheduled_sampling, "scheduled_sampling",
            "probability that an input of the decoder in training is sampled from the model (Bengio et al. 2015)")
          .in(0, 1),
      field(&scheduled_sampling_steps, "scheduled_sampling_steps", "steps over which this probability grows from 0").in(0, 1e12),
  };
}

std::optional<std::string> RecurrentSeq2seqSettings::contradiction() {
  if (bidirectional && reverse_source) return "reverse_source: a bidirectional encoder reads both ways already";
  if (input_feeding && bahdanau()) return "input_feeding: in Bahdanau's style the context enters the cell already";
  return std::nullopt;
}

RecurrentSeq2seq::RecurrentSeq2seq(Parameters& parameters, RecurrentSeq2seqSettings const& s, Index source_vocabulary, Index vocabulary)
    : settings_(s),
      source_tokens_(Scope(parameters).at("source_embedding"), source_vocabulary, s.embedding),
      target_tokens_(Scope(parameters).at("target_embedding"), vocabulary, s.embedding),
      encoder_(Scope(parameters).at("encoder"), encoder_shape(s)),
      attention_(s.attention.style == "none"
                     ? std::optional<SingleHead>()
                     : std::optional<SingleHead>(std::in_place, Scope(parameters).at("attention"), s.attention, s.width, encoder_.width(),
                                                 s.context, AttentionParts{"inputs", "source"})),
      combine_(linear_if(s.luong(), Scope(parameters).at("combine"), encoder_.width() + s.width, s.width, false)),
      output_(Scope(parameters).at("output"), s.bahdanau() ? s.width + encoder_.width() + s.embedding : s.width, vocabulary, true) {
  for (Index layer = 0; layer < s.layers; ++layer) {
    if (!copies_states(s))
      bridges_.emplace_back(layer_scope(Scope(parameters).at("bridge"), layer, s.layers), encoder_.width(), s.width, true);
    decoder_.emplace_back(layer_scope(Scope(parameters).at("decoder"), layer, s.layers), s.cell,
                          layer == 0 ? s.embedding + beside_words() : s.width, s.width, s.normed());
  }
}

Index RecurrentSeq2seq::beside_words() const {
  return settings_.bahdanau() ? encoder_.width() : settings_.input_feeding ? settings_.width : 0;
}

std::optional<Index> RecurrentSeq2seq::limit() const {
  bool const by_position = attention_ && settings_.attention.score == "location";
  return by_position ? std::optional(settings_.context) : std::nullopt;
}

void RecurrentSeq2seq::check(Batch const& batch) const {
  Index const length = batch["source"].size(1);
  if (auto const most = limit(); most && length > *most)
    throw Error(fmt::format("model.context: a source has {} tokens, but the score location is learned for {}", length, *most));
}

Tensor RecurrentSeq2seq::embedded(Embedding const& table, Tensor const& tokens, std::string const& stream, Pass const& pass) const {
  return pass.dropout(table(tokens), settings_.dropout, stream);
}

RecurrentSeq2seq::EncodedSource RecurrentSeq2seq::encode(Batch const& batch, Pass const& pass) const {
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

RecurrentSeq2seq::DecoderState RecurrentSeq2seq::begin(EncodedSource const& source) const {
  Tensor const& s = source.start[0][0];
  return {source.start, settings_.input_feeding ? Tensor::zeros(s.shape(), s.dtype()) : Tensor()};
}

std::vector<Tensor> RecurrentSeq2seq::columns() const {
  if (beside_words() == 0) return {decoder_[0].input().weight};
  return decoder_[0].input_columns({settings_.embedding, beside_words()});
}

Tensor RecurrentSeq2seq::of_words(Tensor const& y, std::vector<Tensor> const& columns) const {
  return linear(y, columns[0], decoder_[0].input().bias);
}

Tensor RecurrentSeq2seq::attentional(Tensor const& context, Tensor const& state) const {
  return tanh((*combine_)(concatenate({context, state}, -1)));
}

Tensor RecurrentSeq2seq::step(Tensor const& words, Tensor const& y, std::vector<Tensor> const& columns, DecoderState& writer,
                              Index position, StepwiseAttention& attention, Pass const& pass) const {
  Tensor a = words, context;
  if (settings_.bahdanau()) context = attention(writer.layers.back()[0], position);
  if (beside_words() > 0) a = linear(settings_.bahdanau() ? context : writer.fed, columns[1], {}, a);
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

Tensor RecurrentSeq2seq::at_once(Tensor const& y, EncodedSource const& source, StepwiseAttention& attention, Pass const& pass) const {
  Tensor x = y;
  for (std::size_t layer = 0; layer < decoder_.size(); ++layer) {
    if (layer > 0) x = pass.dropout(x, settings_.dropout, fmt::format("decoder.{}", layer));
    x = decoder_[layer].scan(x, {}, source.start[layer], pass).outputs;
  }
  Tensor const states = permute(x, {1, 0, 2});
  return settings_.luong() ? attentional(attention(states, 0), states) : states;
}

Tensor RecurrentSeq2seq::step_by_step(Tensor const& tokens, Tensor const& y, EncodedSource const& source, double share,
                                      StepwiseAttention& attention, Pass const& pass) const {
  auto const parts = columns();
  Tensor const words = of_words(y, parts);
  DecoderState writer = begin(source);
  std::vector<Tensor> outputs;
  for (Index t = 0; t < tokens.size(0); ++t) {
    Tensor read = time_step(y, t), of_read = time_step(words, t);
    if (share > 0 && t > 0) {
      Tensor const now = scheduled_sample(reshape(slice(tokens, 0, t, t + 1), {-1}), outputs.back(), share, t, pass);
      read = embedded(target_tokens_, now, fmt::format("target_embedding.{}", t), pass);
      of_read = of_words(read, parts);
    }
    outputs.push_back(step(of_read, read, parts, writer, t, attention, pass));
  }
  return stack(outputs, 1);
}

Tensor RecurrentSeq2seq::scheduled_sample(Tensor const& given, Tensor const& output, double share, Index position, Pass const& pass) const {
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

Outcome RecurrentSeq2seq::run(Batch const& batch, Pass const& pass) const {
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

/// Rows that are decoded together.
class RecurrentSeq2seq::IncrementalDecoding : public StepwiseDecoding {
 public:
  IncrementalDecoding(RecurrentSeq2seq const& model, Batch const& given, Pass const& pass)
      : StepwiseDecoding(pass), model_(model), columns_(model.columns()) {
    source_ = model.encode(given, pass_);
    begin(given.rows());
    restart();
  }

  void restart() override {
    writer_ = model_.begin(source_);
    position_ = 0;
  }

 private:
  Tensor read(Tensor const& tokens) override {
    Tensor const all = transpose(tokens), y = model_.target_tokens_(all), words = model_.of_words(y, columns_);
    StepwiseAttention attention(model_.attention_ ? &*model_.attention_ : nullptr, source_.memory, source_.lengths, {}, pass_);
    Tensor output;
    for (Index t = 0; t < all.size(0); ++t)
      output = model_.step(time_step(words, t), time_step(y, t), columns_, writer_, position_++, attention, pass_);
    return model_.output_(output);
  }
  void keep_read(std::span<Index const> rows) override {
    for (States& states : writer_.layers) states = chosen_rows(states, rows);
    if (writer_.fed.defined()) writer_.fed = take(writer_.fed, rows);
  }
  void keep_given(std::span<Index const> rows) override {
    for (States& states : source_.start) states = chosen_rows(states, rows);
    if (source_.memory) source_.memory = source_.memory->chosen(rows);
    if (source_.lengths.defined()) source_.lengths = take(source_.lengths, rows);
  }

  RecurrentSeq2seq const& model_;
  std::vector<Tensor> columns_;
  EncodedSource source_;
  DecoderState writer_;
  Index position_ = 0;
};

std::unique_ptr<Decoding> RecurrentSeq2seq::decode(Batch const& given, Pass const& pass) const {
  NoGrad const quiet;
  if (!given.has("source")) return nullptr;
  return std::make_unique<IncrementalDecoding>(*this, given, pass);
}

double RecurrentSeq2seq::flops_per_token() const {
  double operations = encoder_.flops() + 2 * static_cast<double>(output_.weight.elements());
  for (RecurrentCell const& cell : decoder_) operations += cell.flops();
  if (combine_) operations += 2 * static_cast<double>(combine_->weight.elements());
  if (attention_) operations += 2 * static_cast<double>(settings_.context * (settings_.width + encoder_.width()));
  return operations;
}

}  // namespace heed
