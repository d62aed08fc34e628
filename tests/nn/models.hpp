#pragma once

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "nn/model.hpp"
#include "tests/gradients.hpp"

// Shared by the tests of models: small settings, random batches, results of a pass, and models as functions of their parameters.

namespace heed::test {

/// Initial weights that make outputs far from uniform.
inline InitSettings wide(double std = 0.5) {
  InitSettings init;
  init.std = std;
  return init;
}

struct RecordedPass {
  explicit RecordedPass(AttentionRecorder::RecorderOptions options) : recorder(std::move(options)) { pass.watching.observer = &observer; }
  RecordedPass(RecordedPass const&) = delete;
  RecordedPass& operator=(RecordedPass const&) = delete;
  std::vector<AttentionRecord> records() const { return recorder.records(); }

  AttentionRecorder recorder;
  Observer observer{.attention = &recorder};
  Pass pass;
};

inline Tensor some(Shape const& shape, std::string const& name, DType dtype = DType::float64) {
  return Tensor::normal(shape, Stream(1, name), dtype);
}

template <class Settings>
Settings sized(Index layers, Index heads, Index width, Index context) {
  Settings settings;
  settings.layers = layers;
  settings.heads = heads;
  settings.width = width;
  settings.context = context;
  return settings;
}

/// Of two layers with two heads.
template <class Settings>
Settings small_stack(std::string const& attention, std::string const& position, Index width) {
  auto settings = sized<Settings>(2, 2, width, 12);
  settings.position = position;
  settings.attention.from_word(attention);
  return settings;
}

/// Integers in [0, classes) from a stream of this name.
inline Tensor random_tokens(Shape const& shape, Index classes, std::string const& name = "tokens", std::uint64_t seed = 5) {
  Stream const stream(seed, name);
  std::vector<Index> tokens;
  for (Index i = 0; i < shape.elements(); ++i)
    tokens.push_back(static_cast<Index>(stream.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(classes))));
  return Tensor::of(tokens, shape);
}

/// The rows [..., T] with other tokens, or targets of −1, behind their lengths.
inline Tensor changed_behind(Tensor const& rows, std::vector<Index> const& lengths, Index classes, bool ignored = false) {
  Tensor result = rows.clone();
  auto const tokens = result.mutable_data<std::int64_t>();
  auto const length = static_cast<std::size_t>(rows.size(-1));
  for (std::size_t at = 0; at < tokens.size(); ++at)
    if (static_cast<Index>(at % length) >= lengths[at / length])
      tokens[at] = ignored ? -1 : (tokens[at] + 1 + static_cast<Index>(at % 3)) % classes;
  return result;
}

/// Three rows of a source of 9 places and a target of 7, each as long as its lengths say, in words of one vocabulary.
inline std::vector<Index> const source_lengths{9, 4, 6}, target_lengths{3, 7, 5};
inline Batch some_pairs(Index vocabulary) {
  return {{"inputs", random_tokens({3, 7}, vocabulary, "inputs")},
          {"targets", random_tokens({3, 7}, vocabulary, "targets")},
          {"source", random_tokens({3, 9}, vocabulary, "source")},
          {"source_lengths", Tensor::of(source_lengths, {3})},
          {"lengths", Tensor::of(target_lengths, {3})}};
}

/// These with targets of −1 behind the lengths and, if `changed`, other words there.
inline Batch padded_pairs(Index vocabulary, bool changed) {
  Batch batch = some_pairs(vocabulary);
  batch.set("targets", changed_behind(batch["targets"], target_lengths, vocabulary, true));
  if (changed) batch.set("inputs", changed_behind(batch["inputs"], target_lengths, vocabulary));
  if (changed) batch.set("source", changed_behind(batch["source"], source_lengths, vocabulary));
  return batch;
}

/// A model of pairs like these; the source has words of its own if their number is given.
inline std::unique_ptr<Model> pair_model(std::string const& kind, Parameters& parameters, Settings const& settings, Index words,
                                         std::optional<Index> source_words = std::nullopt) {
  Signature const data{{.name = "source", .classes = source_words.value_or(words), .vocabulary = source_words ? "source" : ""},
                       {.name = "inputs", .classes = words},
                       {.name = "targets", .classes = words}};
  return model_kind(kind).make(parameters, settings, data);
}

/// A model of pairs with parameters of its own, far from uniform.
struct PairModel {
  PairModel(std::string const& kind, Settings const& settings, Index words, double std = 0.7, DType dtype = DType::float64)
      : parameters(3, dtype, wide(std)), made(pair_model(kind, parameters, settings, words)), model(*made) {}
  Parameters parameters;
  std::unique_ptr<Model> made;
  Model& model;
};

/// Two rows of a text in seven words; the second ends early.
inline Batch some_text() {
  return {{"inputs", Tensor::of(std::vector<Index>{0, 3, 2, 6, 1, 4, 5, 2}, {2, 4})},
          {"targets", Tensor::of(std::vector<Index>{3, 2, 6, 0, 4, 5, -1, -1}, {2, 4})}};
}

/// The rows with another token at one position.
inline Tensor changed_at(Tensor const& rows, std::size_t position, Index classes) {
  Tensor result = rows.clone();
  auto& token = result.mutable_data<std::int64_t>()[position];
  token = (token + 1) % classes;
  return result;
}

/// The first position of the first row whose scores differ; −1: none does.
inline Index first_difference(Model const& model, Batch const& a, Batch const& b) {
  Tensor const before = model.logits(a, {});
  auto const values = before.to_vector(), others = model.logits(b, {}).to_vector();
  auto const at = std::ranges::mismatch(values, others).in1 - values.begin();
  return at == std::ssize(values) ? -1 : at / before.size(-1);
}

inline void check_close(Tensor const& found, Tensor const& expected, double bound) { CHECK(absolute_difference(found, expected) <= bound); }

/// The gradients of all parameters, one after the other; zeros where there is none.
inline std::vector<double> all_gradients(Parameters const& parameters) {
  std::vector<double> all;
  for (auto const& each : parameters.all()) {
    Tensor const gradient = each.second.grad();
    auto const values = gradient.defined() ? gradient.to_vector() : std::vector<double>(static_cast<std::size_t>(each.second.elements()));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// Appends the gradients of all parameters, each of which must have one.
inline void append_gradients(std::vector<double>& all, Parameters const& parameters) {
  for (auto const& each : parameters.all()) {
    CAPTURE(each.first);
    REQUIRE(each.second.grad().defined());
  }
  auto const gradients = all_gradients(parameters);
  all.insert(all.end(), gradients.begin(), gradients.end());
}

/// A pass that draws, as the training step of this number does.
inline Pass training(std::uint64_t number = 0, bool recompute = false) {
  Pass pass;
  pass.training.noise = Stream(8, "noise").child(number);
  pass.training.recompute = recompute;
  return pass;
}

/// A training pass that keeps the choices of hard attention.
struct ChoosingPass {
  explicit ChoosingPass(Pass given = training()) : pass(std::move(given)) { pass.watching.hard_choices = &choices; }
  ChoosingPass(ChoosingPass const&) = delete;
  ChoosingPass& operator=(ChoosingPass const&) = delete;
  /// A loss whose gradients are also those of the choices so far.
  Tensor with_choices(Tensor loss) const {
    for (auto const& made : choices.made) loss = loss + sum(log(made.probability)) + sum(made.entropy);
    return loss;
  }

  mutable HardChoices choices;
  Pass pass;
};

/// What the choices of a training pass can touch, layer by layer.
inline std::vector<HardChoices::Reach> reaches(Model const& model, Batch const& batch, Pass const& given = training()) {
  ChoosingPass const choosing(given);
  model.logits(batch, choosing.pass);
  return mapped(choosing.choices.made, [](auto const& made) { return made.reach; });
}

/// The loss of a training pass, the scores where there are targets, and all gradients, those of hard attention's choices included.
inline std::vector<double> results(Model const& model, Parameters& parameters, Batch const& batch) {
  ChoosingPass const choosing;
  parameters.clear_gradients();
  Tensor const loss = choosing.with_choices(model.loss(batch, choosing.pass));
  loss.backward();
  std::vector<double> all{loss.item()};
  Tensor const logits = model.logits(batch, choosing.pass);
  auto const scores = logits.to_vector();
  auto const classes = logits.size(-1);
  auto const targets = batch["targets"].data<std::int64_t>();
  for (Index at = 0; at < std::ssize(targets); ++at)
    if (heed::at(targets, at) >= 0) all.insert(all.end(), scores.begin() + at * classes, scores.begin() + (at + 1) * classes);
  append_gradients(all, parameters);
  return all;
}

/// How settings contradict themselves after a change; "" if they do not.
std::string said(auto settings, auto const& change) {
  change(settings);
  return settings.contradiction().value_or("");
}

/// The values of parameters, as constants.
inline std::vector<Tensor> values_of(Parameters const& parameters) {
  return mapped(parameters.all(), [](auto const& each) { return each.second.detach(); });
}

inline std::map<std::string, std::vector<double>> values_by_name(Parameters const& parameters) {
  std::map<std::string, std::vector<double>> values;
  for (auto const& [name, parameter] : parameters.all()) values[name] = parameter.to_vector();
  return values;
}

/// Normal gradients, others in every step, of what is not frozen: as backward() leaves them.
inline void draw_gradients(Parameters& parameters, std::uint64_t step) {
  for (auto [name, parameter] : parameters.all())
    if (!parameter.frozen()) parameter.set_grad(Tensor::normal(parameter.shape(), Stream(5, name).child(step), parameter.dtype()));
}

/// Parameters of the same names with these values: for a model as a function of its parameters.
inline Parameters with_values(Parameters const& drawn, std::span<Tensor const> values) {
  std::vector<std::pair<std::string, Tensor>> named;
  for (std::size_t i = 0; i < values.size(); ++i) named.emplace_back(drawn.all()[i].first, values[i]);
  return Parameters::given(std::move(named), values.front().dtype());
}

/// Checks the gradient of what a model made of parameters computes: of every parameter, at `max_elements` elements.
template <class Loss>
void check_gradient(Parameters const& drawn, Loss const& loss, Index max_elements = std::numeric_limits<Index>::max()) {
  auto const of_values = [&](Tensors const& at) {
    Parameters parameters = with_values(drawn, at);
    return loss(parameters);
  };
  check_ok(gradcheck(of_values, values_of(drawn), 1e-7, 1e-4, max_elements));
}

/// The same of a model of pairs in five words, of two padded rows.
inline void check_pair_gradient(std::string const& kind, Settings const& settings, double std,
                                Index max_elements = std::numeric_limits<Index>::max()) {
  Parameters drawn(3, DType::float64, wide(std));
  pair_model(kind, drawn, settings, 5);
  Batch const batch{{"inputs", Tensor::of(std::vector<Index>{0, 2, 3, 4, 1, 0}, {2, 3})},
                    {"targets", Tensor::of(std::vector<Index>{1, 4, -1, 2, 0, 3}, {2, 3})},
                    {"source", Tensor::of(std::vector<Index>{4, 3, 2, 1, 0, 3, 1, 2}, {2, 4})},
                    {"source_lengths", Tensor::of(std::vector<Index>{4, 2}, {2})},
                    {"lengths", Tensor::of(std::vector<Index>{2, 3}, {2})}};
  auto const loss = [&](Parameters& parameters) { return pair_model(kind, parameters, settings, 5)->loss(batch, {}, 0.1); };
  check_gradient(drawn, loss, max_elements);
}

}  // namespace heed::test
